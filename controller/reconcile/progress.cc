#include "controller/reconcile/progress.h"

#include <cstddef>

#include "controller/plan/rules.h"

namespace paceline::reconcile {

bool same_but_for_progress(const api::Status& before, const api::Status& after) {
  api::Status rest = before;
  rest.progress = after.progress;
  // What members saved as they left is told once.
  if (after.phase == api::Phase::kRunning) rest.last_checkpoint = after.last_checkpoint;
  if (rest.members.size() != after.members.size()) return false;
  for (std::size_t i = 0; i < rest.members.size(); ++i) {
    if (plan::says_finished(rest.members[i]) != plan::says_finished(after.members[i])) return false;
    rest.members[i].phase = after.members[i].phase;  // pods that come and go are counted, too
    rest.members[i].step = after.members[i].step;
    rest.members[i].compute_fraction = after.members[i].compute_fraction;
    rest.members[i].wait_fraction = after.members[i].wait_fraction;
    rest.members[i].server = after.members[i].server;
    rest.members[i].staleness = after.members[i].staleness;
  }
  return rest == after;
}

}  // namespace paceline::reconcile
