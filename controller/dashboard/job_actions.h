#pragma once

// Does what people ask to be done to a job, by threads that may block: each becomes an event of the job. The
// server's thread calls.

#include "absl/status/status.h"
#include "controller/dashboard/actions.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/call.h"
#include "controller/dashboard/place.h"
#include "controller/dashboard/workers.h"

namespace paceline::dashboard {

class JobActions {
 public:
  JobActions(Board& board, Place& place) : board_(board), place_(place) {}

  // Answers when it is done; that a job is to be deleted, at once.
  void act(Call call, Action action);

 private:
  absl::Status perform(Action action, const kube::Json& object, const kube::Json& patch);

  Board& board_;
  Place& place_;
  Workers workers_{2};
};

}  // namespace paceline::dashboard
