#include "runtime/collective/plan.h"

namespace paceline::collective {

namespace {

bool writes(const Step& step) {
  return step.action == Action::kCopy || step.action == Action::kReduce || step.action == Action::kFold;
}

// An empty message carries no data but order (a barrier's): it waits for all that came before.
int last_write_before(const std::vector<Step>& steps, std::size_t s) {
  if (steps[s].send.empty()) {
    for (std::size_t t = s; t-- > 0;) {
      if (steps[t].receive_from >= 0) return static_cast<int>(t);
    }
    return -1;
  }
  for (std::size_t t = s; t-- > 0;) {
    if (writes(steps[t]) && steps[t].receive.overlaps(steps[s].send)) return static_cast<int>(t);
  }
  return -1;
}

// The same step's send counts too: in recursive doubling the range that is sent is the one that is written.
int last_send_until(const std::vector<Step>& steps, std::size_t s) {
  for (std::size_t t = s + 1; t-- > 0;) {
    if (steps[t].send_to >= 0 && steps[t].send.overlaps(steps[s].receive)) return static_cast<int>(t);
  }
  return -1;
}

}  // namespace

Plan make_plan(Schedule schedule) {
  Plan plan;
  const std::vector<Step>& steps = schedule.steps;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    plan.send_after.push_back(steps[s].send_to >= 0 ? last_write_before(steps, s) : -1);
    plan.write_after.push_back(writes(steps[s]) ? last_send_until(steps, s) : -1);
  }
  plan.schedule = std::move(schedule);
  return plan;
}

}  // namespace paceline::collective
