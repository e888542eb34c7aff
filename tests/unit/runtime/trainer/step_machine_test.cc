#include "runtime/trainer/step_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/text.h"

namespace paceline::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TimePoint at(int seconds) {
  return TimePoint(std::chrono::seconds(seconds));
}

StepPlan plan_of(Step steps, StepPlan plan = {}) {
  plan.total_steps = steps;
  return plan;
}

// Drives a machine to its end, as a shell would whose every action succeeds; returns what was done.
std::vector<std::string> transcript(StepMachine& machine, const StepPlan& plan, int rank,
                                    double accuracy = 0) {
  std::vector<std::string> lines;
  int seconds = 0;
  while (lines.size() < 100) {
    lines.push_back(str_cat(todo_name(machine.decision().todo), " ", machine.step()));
    switch (machine.decision().todo) {
      case Todo::kPrepare:
        machine.prepared(plan);
        break;
      case Todo::kWaitForView:
        machine.viewed(rank);
        break;
      case Todo::kAlign:
        machine.aligned(0, 0, false, at(seconds));
        break;
      case Todo::kStep:
        machine.applied(machine.step() + 1, {.save = machine.wants_save(at(seconds++))});
        break;
      case Todo::kEvaluate:
        machine.evaluated(1.0, accuracy);
        break;
      case Todo::kCheckpoint:
        machine.checkpointed(at(seconds));
        break;
      case Todo::kWriteModel:
        machine.model_written();
        break;
      case Todo::kLeave:
        machine.left(true);
        break;
      case Todo::kReportFault:
      case Todo::kExit:
        return lines;
    }
  }
  return lines;
}

// In a view, at step `step`.
StepMachine training(const StepPlan& plan, int rank, Step step) {
  StepMachine machine;
  machine.prepared(plan);
  machine.viewed(rank);
  machine.aligned(step, step, false, at(0));
  return machine;
}

TEST(StepMachine, Rank0OfAPlainRun) {
  StepMachine machine;
  EXPECT_THAT(transcript(machine, plan_of(2), 0),
              ElementsAre("Prepare 0", "WaitForView 0", "Align 0", "Step 0", "Step 1", "WriteModel 2",
                          "Leave 2", "Exit 2"));
  EXPECT_EQ(machine.ending(), Ending::kFinished);
}

TEST(StepMachine, OtherRanksWriteNothing) {
  StepPlan plan = plan_of(2, {.saves = true, .checkpoint_every = 1});
  StepMachine machine;
  EXPECT_THAT(transcript(machine, plan, 1),
              ElementsAre("Prepare 0", "WaitForView 0", "Align 0", "Step 0", "Step 1", "Leave 2", "Exit 2"));
}

TEST(StepMachine, EvaluatesWhenDueAndAtTheEndAndSavesAfterwards) {
  StepPlan plan = plan_of(5, {.evaluates = true, .evaluate_every = 2, .saves = true, .checkpoint_every = 4});
  StepMachine machine;
  EXPECT_THAT(transcript(machine, plan, 0),
              ElementsAre("Prepare 0", "WaitForView 0", "Align 0", "Step 0", "Step 1", "Evaluate 2", "Step 2",
                          "Step 3", "Evaluate 4", "Checkpoint 4", "Step 4", "Evaluate 5", "Checkpoint 5",
                          "WriteModel 5", "Leave 5", "Exit 5"));
}

TEST(StepMachine, SavesByTime) {
  // A step takes one second.
  StepPlan plan = plan_of(6, {.saves = true, .checkpoint_time = std::chrono::seconds(3)});
  StepMachine machine;
  EXPECT_THAT(
      transcript(machine, plan, 0),
      ElementsAre("Prepare 0", "WaitForView 0", "Align 0", "Step 0", "Step 1", "Step 2", "Step 3",
                  "Checkpoint 4", "Step 4", "Step 5", "Checkpoint 6", "WriteModel 6", "Leave 6", "Exit 6"));
}

TEST(StepMachine, ASaveIsAnnouncedBeforeItsStepByRank0Alone) {
  StepPlan plan =
      plan_of(10, {.saves = true, .checkpoint_every = 4, .checkpoint_time = std::chrono::seconds(30)});
  EXPECT_FALSE(training(plan, 0, 2).wants_save(at(29)));
  EXPECT_TRUE(training(plan, 0, 2).wants_save(at(30))) << "everySeconds";
  EXPECT_TRUE(training(plan, 0, 3).wants_save(at(1))) << "everySteps";
  EXPECT_FALSE(training(plan, 1, 3).wants_save(at(100)));
  plan.saves = false;
  EXPECT_FALSE(training(plan, 0, 3).wants_save(at(100)));
}

TEST(StepMachine, CheckpointThatIsAskedForIsDueUntilOneIsSaved) {
  const StepPlan plan = plan_of(10, {.saves = true});
  StepMachine first = training(plan, 0, 2), second = training(plan, 1, 2);
  EXPECT_FALSE(first.wants_save(at(1)));
  first.ask_to_save();
  second.ask_to_save();
  EXPECT_TRUE(first.wants_save(at(1)));
  EXPECT_FALSE(second.wants_save(at(1))) << "rank 0 saves";
  EXPECT_EQ(first.applied(3, {}).todo, Todo::kStep) << "an earlier one is being written";
  EXPECT_TRUE(first.wants_save(at(2)));
  EXPECT_EQ(first.applied(4, {.save = true}).todo, Todo::kCheckpoint);
  EXPECT_EQ(first.checkpointed(at(3)).todo, Todo::kStep);
  EXPECT_FALSE(first.wants_save(at(3)));
  second.applied(4, {.save = true});
  second.viewed(0);
  second.aligned(4, 4, false, at(3));
  EXPECT_FALSE(second.wants_save(at(3))) << "rank 0 did it";
  StepMachine unable = training(plan_of(10, {}), 0, 2);
  unable.ask_to_save();
  EXPECT_FALSE(unable.wants_save(at(1))) << "there is no place for checkpoints";
}

TEST(StepMachine, ATargetEndsTheJob) {
  struct Case {
    Target target;
    double loss, accuracy;
    bool reached;
    std::optional<double> auc = std::nullopt;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Case& c : std::vector<Case>{{{TargetMetric::kAccuracy, 0.9}, 1, 0.9, true},
                                         {{TargetMetric::kAccuracy, 0.9}, 0, 0.89, false},
                                         {{TargetMetric::kAccuracy, 0.9}, 0, nan, false},
                                         {{TargetMetric::kLoss, 0.5}, 0.5, 0, true},
                                         {{TargetMetric::kLoss, 0.5}, 0.6, 1, false},
                                         {{TargetMetric::kLoss, 0.5}, nan, 1, false},
                                         {{TargetMetric::kAuc, 0.7}, 1, 0, true, 0.7},
                                         {{TargetMetric::kAuc, 0.7}, 0, 1, false, 0.69},
                                         {{TargetMetric::kAuc, 0.7}, 0, 1, false, nan},
                                         {{TargetMetric::kAuc, 0.7}, 0, 1, false}}) {
    StepPlan plan = plan_of(10, {.evaluates = true, .evaluate_every = 1, .target = c.target});
    StepMachine machine;
    machine.prepared(plan);
    machine.viewed(0);
    machine.aligned(0, 0, false, at(0));
    ASSERT_EQ(machine.applied(machine.step() + 1, {}).todo, Todo::kEvaluate);
    EXPECT_EQ(machine.evaluated(c.loss, c.accuracy, c.auc).todo, c.reached ? Todo::kWriteModel : Todo::kStep);
    EXPECT_EQ(machine.target_reached(), c.reached);
  }
}

TEST(StepMachine, AllStopAfterTheStepInWhichOneWishes) {
  // It saves nothing regularly, but a stopped job can be continued.
  StepPlan plan = plan_of(10, {.evaluates = true, .evaluate_every = 1, .saves = true});
  StepMachine chief = training(plan, 0, 3), other = training(plan, 1, 3);
  EXPECT_EQ(chief.applied(4, {.stop = true}).todo, Todo::kCheckpoint);
  EXPECT_EQ(chief.checkpointed(at(1)).todo, Todo::kLeave);
  EXPECT_EQ(other.applied(4, {.stop = true}).todo, Todo::kLeave);
  EXPECT_EQ(chief.ending(), Ending::kStopped);
  EXPECT_EQ(chief.left(true).todo, Todo::kExit);
  EXPECT_NE(chief.left(false).reason, chief.left(true).reason);
}

TEST(StepMachine, ADrainedViewIsLeftAtTheSameStepAndTheNextOneContinues) {
  StepMachine machine = training(plan_of(10), 1, 3);
  EXPECT_EQ(machine.applied(4, {.drain = true}).todo, Todo::kWaitForView);
  EXPECT_EQ(machine.viewed(0).todo, Todo::kAlign);
  EXPECT_EQ(machine.aligned(4, 4, false, at(2)).todo, Todo::kStep);
  EXPECT_EQ(machine.applied(machine.step() + 1, {}).todo, Todo::kStep) << "the old view's drain is forgotten";
}

TEST(StepMachine, AMemberThatAViewLeavesOutWaitsForAnotherOne) {
  StepMachine machine = training(plan_of(10), 1, 3);
  EXPECT_EQ(machine.applied(4, {.drain = true}).todo, Todo::kWaitForView);
  EXPECT_EQ(machine.left_out().todo, Todo::kWaitForView);
  EXPECT_EQ(machine.viewed(0).todo, Todo::kAlign);
  EXPECT_EQ(machine.aligned(7, 4, false, at(2)).todo, Todo::kStep);
}

TEST(StepMachine, AFailedPeerAbandonsTheStepAndTheNextViewRepeatsIt) {
  StepMachine machine = training(plan_of(10), 1, 3);
  EXPECT_EQ(machine.peer_failed().todo, Todo::kReportFault);
  EXPECT_EQ(machine.step(), 3);
  EXPECT_EQ(machine.viewed(0).todo, Todo::kAlign);
  EXPECT_EQ(machine.aligned(3, 3, false, at(1)).todo, Todo::kStep);
}

TEST(StepMachine, AnEvaluationThatIsDueIsTakenAgainAfterTheNextView) {
  StepMachine machine = training(plan_of(10, {.evaluates = true, .evaluate_every = 4}), 1, 3);
  EXPECT_EQ(machine.applied(4, {}).todo, Todo::kEvaluate);
  EXPECT_TRUE(machine.evaluation_due());
  machine.peer_failed();
  machine.viewed(0);
  EXPECT_EQ(machine.aligned(4, 0, true, at(1)).todo, Todo::kEvaluate);
  EXPECT_EQ(machine.evaluated(1, 0).todo, Todo::kStep);
  EXPECT_FALSE(machine.evaluation_due());
}

TEST(StepMachine, CheckpointsOfRank0AreKnownToItsSuccessor) {
  const StepPlan plan = plan_of(20, {.saves = true, .checkpoint_every = 4});
  StepMachine machine = training(plan, 1, 3);
  machine.applied(4, {.save = true});
  machine.applied(5, {});
  EXPECT_EQ(machine.saved_step(), 4);
  machine.peer_failed();
  machine.viewed(0);
  machine.aligned(5, 4, false, at(1));
  EXPECT_FALSE(machine.wants_save(at(2)));
  machine.applied(6, {});
  machine.applied(7, {});
  EXPECT_TRUE(machine.wants_save(at(2)));
}

TEST(StepMachine, AMemberThatIsToSaveDoesSoWhenTheMembershipEnds) {
  const StepPlan plan = plan_of(20, {.saves = true});
  EXPECT_EQ(training(plan, 1, 3).ended(false).todo, Todo::kLeave);
  StepMachine machine = training(plan, 1, 3);
  machine.applied(4, {});
  EXPECT_EQ(machine.ended(false, true).todo, Todo::kCheckpoint);
}

TEST(StepMachine, TheEndOfTheJobNeedsNoGoodbye) {
  StepMachine machine = training(plan_of(10), 1, 3);
  EXPECT_EQ(machine.ended(false).todo, Todo::kLeave) << "the coordinator may still want to know the step";
  EXPECT_EQ(machine.left(true).todo, Todo::kExit);
  EXPECT_EQ(machine.ending(), Ending::kEnded);
  StepMachine finished = training(plan_of(10), 0, 3);
  EXPECT_EQ(finished.ended(true).todo, Todo::kExit);
  EXPECT_EQ(finished.ending(), Ending::kFinished);
}

TEST(StepMachine, Rank0SavesWhatIsNotSavedBeforeItLeaves) {
  struct Case {
    const char* name;
    Decision (*end)(StepMachine&);
    Ending ending;
    bool saves;
  };
  StepPlan plan = plan_of(10, {.saves = true});
  for (const Case& c : std::vector<Case>{
           {"evicted", [](StepMachine& m) { return m.ended(false); }, Ending::kEnded, true},
           {"failed", [](StepMachine& m) { return m.failed(); }, Ending::kFailed, true},
           {"asked to stop", [](StepMachine& m) { return m.stopped(); }, Ending::kStopped, true},
           {"diverged", [](StepMachine& m) { return m.diverged(); }, Ending::kFailed, false},
           {"weights differ", [](StepMachine& m) { return m.ended_in_vain(); }, Ending::kEnded, false}}) {
    SCOPED_TRACE(c.name);
    StepMachine machine = training(plan, 0, 3);
    machine.applied(4, {});
    EXPECT_EQ(c.end(machine).todo, c.saves ? Todo::kCheckpoint : Todo::kLeave);
    if (c.saves) {
      EXPECT_EQ(machine.checkpointed(at(1)).todo, Todo::kLeave);
    }
    EXPECT_EQ(machine.ending(), c.ending);

    StepMachine restored = training(plan, 0, 3);
    EXPECT_EQ(c.end(restored).todo, Todo::kLeave) << "no step since it was restored";
    StepMachine other = training(plan, 1, 3);
    other.applied(4, {});
    EXPECT_EQ(c.end(other).todo, Todo::kLeave) << "rank 0 saves";
    StepMachine unaligned;
    unaligned.prepared(plan);
    unaligned.viewed(0);
    EXPECT_EQ(c.end(unaligned).todo, Todo::kLeave) << "it holds no state yet";
  }
}

// A model that can't be written, or a last evaluation that fails, leaves a checkpoint.
TEST(StepMachine, AFailureAfterTheLastStepSavesIt) {
  StepPlan plan = plan_of(4, {.saves = true});
  StepMachine machine = training(plan, 0, 3);
  EXPECT_EQ(machine.applied(4, {}).todo, Todo::kWriteModel);
  EXPECT_EQ(machine.failed().todo, Todo::kCheckpoint);
  EXPECT_EQ(machine.checkpointed(at(1)).todo, Todo::kLeave);
  EXPECT_EQ(machine.ending(), Ending::kFailed);
}

TEST(StepMachine, ARank0ThatIsStoppedAfterAnAbandonedStepSavesWhatIsNotSaved) {
  StepPlan plan = plan_of(10, {.saves = true});
  StepMachine machine = training(plan, 0, 3);
  machine.applied(machine.step() + 1, {});
  EXPECT_EQ(machine.peer_failed().todo, Todo::kReportFault);
  EXPECT_EQ(machine.stopped().todo, Todo::kCheckpoint);
  EXPECT_EQ(machine.checkpointed(at(1)).todo, Todo::kLeave);
  EXPECT_EQ(machine.ending(), Ending::kStopped);
}

TEST(StepMachine, OwnFailuresAreSaidBeforeLeaving) {
  StepMachine machine = training(plan_of(10), 0, 3);
  EXPECT_EQ(machine.failed().todo, Todo::kLeave);
  EXPECT_EQ(machine.left(true).todo, Todo::kExit);
  EXPECT_EQ(machine.ending(), Ending::kFailed);

  StepMachine unprepared;
  EXPECT_EQ(unprepared.failed().todo, Todo::kLeave);
  EXPECT_EQ(unprepared.step(), 0);
}

TEST(StepMachine, ResumingAfterTheLastStepOnlyEvaluates) {
  StepPlan plan = plan_of(10, {.evaluates = true});
  StepMachine machine;
  machine.prepared(plan);
  machine.viewed(0);
  EXPECT_EQ(machine.aligned(10, 10, false, at(0)).todo, Todo::kEvaluate);
  EXPECT_EQ(machine.evaluated(1, 0).todo, Todo::kWriteModel);
}

// Turns that bring the job no step forward, or several: nothing is done twice, nothing is left out.
TEST(StepMachine, WithServersStepsAreWhatTheTurnsSay) {
  StepPlan plan = plan_of(
      10, {.evaluates = true, .evaluate_every = 3, .saves = true, .checkpoint_every = 4, .servers = true});
  StepMachine machine = training(plan, 0, 0);
  EXPECT_EQ(machine.applied(0, {}).todo, Todo::kStep) << "another unit of the same step";
  EXPECT_EQ(machine.applied(2, {}).todo, Todo::kStep);
  EXPECT_EQ(machine.applied(2, {}).todo, Todo::kStep);
  EXPECT_FALSE(machine.wants_save(at(1)));
  EXPECT_EQ(machine.applied(3, {}).todo, Todo::kEvaluate);
  EXPECT_EQ(machine.evaluated(1, 0).todo, Todo::kStep);
  EXPECT_TRUE(machine.wants_save(at(1)));
  EXPECT_EQ(machine.applied(3, {}).todo, Todo::kStep) << "evaluated once";
  EXPECT_EQ(machine.applied(7, {.save = true}).todo, Todo::kEvaluate) << "6 was passed";
  EXPECT_EQ(machine.evaluated(1, 0).todo, Todo::kCheckpoint) << "4 was passed";
  EXPECT_EQ(machine.checkpointed(at(2)).todo, Todo::kStep);
  EXPECT_EQ(machine.applied(10, {.finish = true}).todo, Todo::kEvaluate);
  EXPECT_EQ(machine.evaluated(1, 0).todo, Todo::kCheckpoint);
  EXPECT_EQ(machine.checkpointed(at(3)).todo, Todo::kWriteModel);
  EXPECT_EQ(machine.ending(), Ending::kFinished);
}

TEST(StepMachine, WithServersOtherWorkersEvaluateNothingAndEndWhenTheyHearOfIt) {
  StepPlan plan = plan_of(10, {.evaluates = true,
                               .evaluate_every = 1,
                               .target = Target{TargetMetric::kAccuracy, 0.5},
                               .servers = true});
  StepMachine machine = training(plan, 1, 0);
  EXPECT_EQ(machine.applied(1, {}).todo, Todo::kStep);
  EXPECT_EQ(machine.applied(4, {.finish = true}).todo, Todo::kLeave) << "rank 0 has reached the target";
  EXPECT_EQ(machine.ending(), Ending::kFinished);
  EXPECT_THAT(std::string(machine.decision().reason), HasSubstr("target"));
}

// What the servers held went with the view.
TEST(StepMachine, WithServersNothingIsSavedWithoutThem) {
  StepPlan plan = plan_of(10, {.saves = true, .servers = true});
  StepMachine machine = training(plan, 0, 3);
  machine.applied(4, {});
  EXPECT_EQ(machine.peer_failed().todo, Todo::kReportFault);
  EXPECT_EQ(machine.ended(false).todo, Todo::kLeave);
  StepMachine evicted = training(plan, 0, 3);
  evicted.applied(4, {});
  EXPECT_EQ(evicted.ended(false).todo, Todo::kCheckpoint) << "they are still there";
  StepMachine asked = training(plan, 0, 3);
  EXPECT_EQ(asked.applied(4, {.stop = true}).todo, Todo::kCheckpoint) << "they are still there";
}

TEST(StepMachine, EveryDecisionHasAReason) {
  StepMachine machine;
  EXPECT_FALSE(machine.decision().reason.empty());
  EXPECT_THAT(std::string(machine.stopped().reason), HasSubstr("stop"));
}

}  // namespace
}  // namespace paceline::trainer
