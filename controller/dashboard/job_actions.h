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
  JobActions(Board& board, Place& place, Audit audit)
      : board_(board), place_(place), audit_(std::move(audit)) {}

  // Answers when it is done; that a job is to be deleted, at once where that takes long.
  void act(Call call, Action action);

 private:
  absl::Status perform(const Call& call, Action action, const kube::Json& patch);

  Board& board_;
  Place& place_;
  const Audit audit_;
  Workers workers_{2};
};

}  // namespace paceline::dashboard
