#pragma once

// What a member does within one view: steps, each of which leaves it with newer weights. One implementation
// per strategy; thrown away with the view. One thread.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "runtime/member/step_clock.h"
#include "runtime/trainer/evaluator.h"
#include "runtime/trainer/step_machine.h"

namespace paceline::trainer {

struct StepResult {
  Step step = 0;  // that the job has applied: all members together
  Agreement agreed;
  bool has_loss = true;
  double loss = 0;  // mean over the samples that were applied
  double learning_rate = 0;
  std::uint64_t bytes_sent = 0;
  std::int64_t left_out = 0;  // of this member's samples; and the time that they would have taken
  Duration time_left_out{};
};

class Session {
 public:
  virtual ~Session() = default;

  // This member's next gradient, and then new weights in its replica: input, passes, exchange; `clock` says
  // where the time went. On an error the replica is as it was: UNAVAILABLE, DEADLINE_EXCEEDED, ABORTED (a
  // peer's fault, or closed); those of input_error(); OUT_OF_RANGE: the loss or the gradient isn't finite.
  virtual absl::StatusOr<StepResult> step(const Agreement& wishes, member::StepClock& clock) = 0;
  // Of the weights that this member holds, on the held-out samples, where the machine says so. The same
  // errors, but OUT_OF_RANGE.
  virtual absl::StatusOr<EvaluationResult> evaluate(Evaluator& evaluator) = 0;
  // The target is reached. With all-reduce all members have seen it.
  virtual absl::Status report_target_reached() { return absl::OkStatus(); }
  // This member takes no more steps in this view, and is not lost.
  virtual void leave() {}
};

}  // namespace paceline::trainer
