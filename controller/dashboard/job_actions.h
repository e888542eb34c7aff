#pragma once

// Does what people ask to be done to a job, by threads that may block: each becomes an event of the job. The
// server's thread calls.

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "controller/dashboard/actions.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/call.h"
#include "controller/dashboard/place.h"
#include "controller/dashboard/workers.h"

namespace paceline::dashboard {

class JobActions {
 public:
  // Told of each action, and what came of it: "forbidden", "refused: ...", "done", "failed: ...".
  using Audit = std::function<void(const Viewer& viewer, Action action, const std::string& job,
                                   const std::string& result)>;
  JobActions(Board& board, Place& place, const Clock& clock, Audit audit)
      : board_(board), place_(place), clock_(clock), audit_(std::move(audit)) {}

  // Answers when it is done; that a job is to be deleted, at once where that takes long.
  void act(Call call, Action action);

 private:
  using Note = std::function<void(const std::string& result)>;
  void work(const Call& call, Action action, const kube::Json& body, const Note& note);
  absl::StatusOr<Deed> prepare(const Call& call, jobs::JobSource& source, Action action,
                               const kube::Json& body) const;
  absl::Status perform(const Call& call, jobs::JobSource& source, Action action, const kube::Json& patch);

  Board& board_;
  Place& place_;
  const Clock& clock_;
  const Audit audit_;
  Workers workers_{2};
};

}  // namespace paceline::dashboard
