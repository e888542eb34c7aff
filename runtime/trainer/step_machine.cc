#include "runtime/trainer/step_machine.h"

#include <iterator>

#include "base/check.h"

namespace paceline::trainer {

namespace {
constexpr std::string_view kFailed = "this member failed";
}  // namespace

const char* todo_name(Todo todo) {
  static constexpr const char* kNames[] = {"Prepare",    "WaitForView", "Align",       "Step",  "Evaluate",
                                           "Checkpoint", "WriteModel",  "ReportFault", "Leave", "Exit"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Todo::kExit) + 1);
  return todo <= Todo::kExit ? kNames[static_cast<std::size_t>(todo)] : "?";
}

Decision StepMachine::decide(Todo todo, std::string_view reason) {
  decision_ = {todo, reason};
  return decision_;
}

Decision StepMachine::prepared(const StepPlan& plan) {
  PL_CHECK(plan.total_steps > 0, "a plan has steps");
  plan_ = plan;
  return decide(Todo::kWaitForView, "data and model are ready");
}

Decision StepMachine::viewed(int rank) {
  rank_ = rank;
  agreed_ = {};
  return decide(Todo::kAlign, "a new view");
}

Decision StepMachine::left_out() {
  rank_ = -1;
  return decide(Todo::kWaitForView, "others have the places");
}

Decision StepMachine::aligned(Step step, Step saved_step, bool evaluates, TimePoint now) {
  step_ = step_before_ = step;
  saved_step_ = saved_step;
  saved_at_ = now;
  if (evaluates) return begin_evaluation("its evaluation was abandoned");
  if (!last_step()) return decide(Todo::kStep, "all members hold the same state");
  return after_step();
}

Decision StepMachine::applied(Step step, const Agreement& agreed) {
  PL_CHECK(step >= step_, "applied steps stay applied");
  step_before_ = step_;
  step_ = step;
  agreed_ = agreed;
  if (agreed.save && rank_ != 0) {  // rank 0 does it now
    saved_step_ = step;
    asked_to_save_ = false;
  }
  return after_step();
}

Decision StepMachine::after_step() {
  if (agreed_.stop) {
    ending_ = Ending::kStopped;
    return after_evaluation();
  }
  if (evaluates() && last_step()) return begin_evaluation("the last step is applied");
  if (evaluates() && passes(plan_.evaluate_every, step_before_, step_))
    return begin_evaluation("an evaluation is due");
  return after_evaluation();
}

Decision StepMachine::begin_evaluation(std::string_view reason) {
  evaluation_due_ = true;
  return decide(Todo::kEvaluate, reason);
}

bool reaches(const Target& target, double loss, double accuracy, std::optional<double> auc) {
  switch (target.metric) {
    case TargetMetric::kAccuracy:
      return accuracy >= target.value;
    case TargetMetric::kLoss:
      return loss <= target.value;
    case TargetMetric::kAuc:
      return auc.has_value() && *auc >= target.value;
  }
  return false;
}

Decision StepMachine::evaluated(double loss, double accuracy, std::optional<double> auc) {
  evaluation_due_ = false;
  if (plan_.target.has_value()) target_reached_ = reaches(*plan_.target, loss, accuracy, auc);
  return after_evaluation();
}

Decision StepMachine::after_evaluation() {
  if (ending_ == Ending::kNone && (target_reached_ || agreed_.finish || last_step())) {
    ending_ = Ending::kFinished;
  }
  const auto due = checkpoint_reason();
  if (due.has_value()) return decide(Todo::kCheckpoint, *due);
  return after_checkpoint();
}

std::optional<std::string_view> StepMachine::checkpoint_reason() const {
  if (rank_ != 0 || !plan_.saves || step_ == saved_step_) return std::nullopt;
  const bool regular = plan_.checkpoint_every > 0 || plan_.checkpoint_time > Duration::zero();
  if (ending_ == Ending::kStopped) return "the job stops";
  if (ending_ == Ending::kFinished && regular) return "training is finished";
  if (agreed_.drain && plan_.servers) return "the view is drained";
  if (!agreed_.save) return std::nullopt;
  if (asked_to_save_) return "it was asked for";
  return passes_checkpoint(step_) ? "everySteps" : "everySeconds";
}

bool StepMachine::wants_save(TimePoint now) const {
  if (rank_ != 0 || !plan_.saves) return false;
  const bool late = plan_.checkpoint_time > Duration::zero() && now - saved_at_ >= plan_.checkpoint_time;
  return passes_checkpoint(step_ + 1) || late || asked_to_save_;
}

Decision StepMachine::checkpointed(TimePoint now) {
  saved_step_ = step_;
  saved_at_ = now;
  asked_to_save_ = false;
  return after_checkpoint();
}

Decision StepMachine::after_checkpoint() {
  if (ending_ == Ending::kFailed) return decide(Todo::kLeave, kFailed);
  if (ending_ == Ending::kEnded) return decide(Todo::kLeave, "the membership ended");
  if (ending_ == Ending::kStopped) return decide(Todo::kLeave, "a member was asked to stop");
  if (ending_ == Ending::kFinished) {
    const bool early = target_reached_ || !last_step();
    const std::string_view why = early ? "the target is reached" : "all steps are applied";
    return decide(rank_ == 0 ? Todo::kWriteModel : Todo::kLeave, why);
  }
  if (agreed_.drain) return decide(Todo::kWaitForView, "the view is drained");
  return decide(Todo::kStep, "the next step");
}

Decision StepMachine::model_written() {
  return decide(Todo::kLeave, "the model is written");
}

Decision StepMachine::left(bool told) {
  return decide(Todo::kExit, told ? "the coordinator was told" : "the coordinator did not hear of it");
}

Decision StepMachine::peer_failed() {
  if (plan_.servers) saved_step_ = step_;  // what the servers held is out of reach
  return decide(Todo::kReportFault, "the step is abandoned: a peer failed");
}

Decision StepMachine::end(Ending ending, std::string_view reason, bool saves) {
  ending_ = ending;
  return decide((saves || rank_ == 0) && has_unsaved_steps() ? Todo::kCheckpoint : Todo::kLeave, reason);
}

Decision StepMachine::failed() {
  return end(Ending::kFailed, kFailed);
}

Decision StepMachine::diverged() {
  ending_ = Ending::kFailed;
  return decide(Todo::kLeave, kFailed);
}

Decision StepMachine::ended(bool finished, bool saves) {
  if (!finished) return end(Ending::kEnded, "the membership ended", saves && !plan_.servers);
  ending_ = Ending::kFinished;
  return decide(Todo::kExit, "the job is finished");
}

Decision StepMachine::ended_in_vain() {
  ending_ = Ending::kEnded;
  return decide(Todo::kLeave, "the membership ended: what this member holds is not wanted");
}

Decision StepMachine::stopped() {
  return end(Ending::kStopped, "asked to stop");
}

}  // namespace paceline::trainer
