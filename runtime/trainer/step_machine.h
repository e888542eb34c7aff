#pragma once

// What a member does next: the trainer's decisions, as a state machine (Trainer is the shell that carries
// them out). Every event returns the next decision, with its reason. Pure; one thread.
//
//   Prepare -> WaitForView -> Align -> Step -> [Evaluate] -> [Checkpoint] -> Step ...   (boundary of a step)
//                  ^                     |                        '-> [WriteModel] -> Leave -> Exit
//                  |                     '- a peer failed -> ReportFault -+
//                  '---------------- a newer view -----------------------+
//   any -> [Checkpoint] -> Leave (own failure, stopped, or the membership ended) -> Exit;   any -> Exit (the
//   job is finished)
//
// With all-reduce all members of a view take the same decisions at the same step, because they see the same:
// the plan, what was agreed in the step's exchange, and the evaluation's sums. Only checkpoints and the model
// are rank 0's. An abandoned step changed no weights: the step is taken again in the next view.
// With parameter servers a member's turn may bring the job no step forward, or several; rank 0 alone
// evaluates, and all members hear of its end by what their next turn agrees.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"

namespace paceline::trainer {

enum class TargetMetric : std::uint8_t { kAccuracy, kLoss, kAuc };
struct Target {
  TargetMetric metric = TargetMetric::kAccuracy;
  double value = 0;  // reached at >= value, or at <= value (loss); never by a NaN, nor by what is not there
};
bool reaches(const Target& target, double loss, double accuracy, std::optional<double> auc);

// Fixed for a run. Steps are counted as applied so far.
struct StepPlan {
  Step total_steps = 0;  // > 0
  bool evaluates = false;
  Step evaluate_every = 0;  // 0: at the end only
  std::optional<Target> target;
  bool saves = false;          // there is a place for checkpoints
  Step checkpoint_every = 0;   // 0: not by steps
  Duration checkpoint_time{};  // 0: not by time
  // The state lies on parameter servers: rank 0 alone evaluates, and what is not saved when the view breaks
  // is lost with it.
  bool servers = false;
};

// What the members told each other in a step's exchange: the same on all.
struct Agreement {
  bool stop = false;    // somebody was asked to stop
  bool drain = false;   // somebody was told to wait for the next view
  bool save = false;    // rank 0 saves after this step: the others wait for it longer than for a step
  bool finish = false;  // the training is finished, perhaps before its last step
};

enum class Todo : std::uint8_t {
  kPrepare,      // load data, compile, initial weights            -> prepared()
  kWaitForView,  //                                                -> viewed()
  kAlign,        // make all members hold the same state           -> aligned()
  kStep,         // one step                                       -> applied()
  kEvaluate,     //                                                -> evaluated()
  kCheckpoint,   // rank 0                                         -> checkpointed()
  kWriteModel,   // rank 0                                         -> model_written()
  kReportFault,  // tell the coordinator who failed, and wait for its word, a newer view -> viewed()
  kLeave,        // say goodbye                                    -> left()
  kExit,
};
const char* todo_name(Todo todo);

struct Decision {
  Todo todo = Todo::kPrepare;
  std::string_view reason;  // constant text
};

enum class Ending : std::uint8_t {
  kNone,
  kFinished,
  kFailed,   // by an error of this member
  kStopped,  // it was asked to stop
  kEnded,    // the coordinator evicted it or is gone
};

class StepMachine {
 public:
  // The plan is known once the data is open: see prepared().
  StepMachine() = default;

  Decision decision() const { return decision_; }
  Step step() const { return step_; }              // applied so far
  Step saved_step() const { return saved_step_; }  // of the newest checkpoint, as far as this member knows
  bool evaluation_due() const { return evaluation_due_; }  // after this step, and not over
  Ending ending() const { return ending_; }
  bool target_reached() const { return target_reached_; }
  // Whether a checkpoint is due after the step that begins now. Rank 0's wish; it comes back in applied().
  bool wants_save(TimePoint now) const;
  // Somebody asked for a checkpoint: one is due until one is saved.
  void ask_to_save() { asked_to_save_ = true; }
  const StepPlan& plan() const { return plan_; }

  Decision prepared(const StepPlan& plan);
  Decision viewed(int rank);
  // A view has come that this member is not in: it waits for another one.
  Decision left_out();
  // All members hold the state after `step` steps, of which a checkpoint of `saved_step` is the newest.
  // `evaluates`: the evaluation that is due after it is to be taken, perhaps again, by all.
  Decision aligned(Step step, Step saved_step, bool evaluates, TimePoint now);
  // `step` steps are applied now, by all members together. REQUIRES: not fewer than before.
  Decision applied(Step step, const Agreement& agreed);
  Decision evaluated(double loss, double accuracy, std::optional<double> auc = std::nullopt);
  Decision checkpointed(TimePoint now);
  Decision model_written();
  Decision left(bool told);

  // A collective failed because of a peer.
  Decision peer_failed();
  // This member can't go on. Rank 0 saves as in ended().
  Decision failed();
  // Likewise, for its loss or its gradient is not finite. Nothing is saved: weights that have diverged would
  // take the place of good ones.
  Decision diverged();
  // The membership is over. `finished`: because the job is; else rank 0, or who `saves`, first saves what was
  // trained since the last checkpoint, and the goodbye tells the coordinator, where it still listens, how far
  // this member came.
  Decision ended(bool finished, bool saves = false);
  // The membership is over, and the weights are not to be trusted, or lost: nothing is saved.
  Decision ended_in_vain();
  // Asked to stop while no view is being trained (in one, Agreement says it) or its last step was abandoned,
  // or asked a second time. Rank 0 saves as in ended().
  Decision stopped();

 private:
  Decision decide(Todo todo, std::string_view reason);
  // No step follows. What is not saved yet is saved before anything else.
  Decision end(Ending ending, std::string_view reason, bool saves = false);
  Decision after_step();
  Decision begin_evaluation(std::string_view reason);
  Decision after_evaluation();
  Decision after_checkpoint();
  std::optional<std::string_view> checkpoint_reason() const;
  // Whether a multiple of `every` lies in (from, to].
  static bool passes(Step every, Step from, Step to) { return every > 0 && to / every > from / every; }
  bool passes_checkpoint(Step step) const { return passes(plan_.checkpoint_every, saved_step_, step); }
  bool evaluates() const { return plan_.evaluates && (rank_ == 0 || !plan_.servers); }
  bool has_unsaved_steps() const { return plan_.saves && saved_step_ >= 0 && step_ > saved_step_; }
  bool last_step() const { return step_ >= plan_.total_steps; }

  Decision decision_{Todo::kPrepare, "the member starts"};
  StepPlan plan_;
  int rank_ = -1;
  Step step_ = 0, step_before_ = 0;  // now; before the last applied()
  Agreement agreed_;
  bool evaluation_due_ = false;
  bool target_reached_ = false;
  Ending ending_ = Ending::kNone;
  Step saved_step_ = -1;  // -1: no state yet
  TimePoint saved_at_{};
  bool asked_to_save_ = false;
};

}  // namespace paceline::trainer
