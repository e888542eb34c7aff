#include "controller/plan/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/elastic.h"
#include "controller/plan/rules.h"
#include "controller/plan/stragglers.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using api::ReplacementOutcome;
using api::RequestOutcome;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A chief and three workers that train; worker-1 is on a node of its own.
class PlanRequestsTest : public ::testing::Test {
 protected:
  PlanRequestsTest() { begin(elastic_job()); }
  static api::TrainingJob elastic_job() {
    api::TrainingJob job = make_job(1, 3);
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
    return job;
  }
  void begin(api::TrainingJob job) {
    world = make_running_world(std::move(job));
    for (cluster::Pod& pod : world.pods) pod.host = pod.spec.index == 1 ? "node-b" : "node-a";
    look();
  }
  Plan look(Duration later = {}) {
    world.now += later;
    Plan made = plan(world);
    apply(made, world);
    return made;
  }
  Plan ask(const char* annotation, const std::string& text) {
    world.job.metadata.annotations[annotation] = text;
    return look();
  }
  const std::optional<api::Request>& checkpoint() const { return world.job.status.requests.checkpoint; }
  const std::optional<api::Request>& replace() const { return world.job.status.requests.replace; }
  const std::vector<api::StragglerReplacement>& told() const {
    return world.job.status.straggler_replacements;
  }
  static std::vector<std::string> events(const Plan& made) {
    std::vector<std::string> reasons;
    for (const RecordEvent& each : actions_of<RecordEvent>(made)) reasons.push_back(each.event.reason);
    return reasons;
  }

  Observed world;
};

TEST_F(PlanRequestsTest, CheckpointIsAskedForUntilItIsAnswered) {
  EXPECT_EQ(save_request(world.job), "");
  const Plan made = ask(api::kCheckpointRequest, "first");
  ASSERT_TRUE(checkpoint().has_value());
  EXPECT_EQ(checkpoint()->outcome, RequestOutcome::kUnderWay);
  EXPECT_EQ(save_request(world.job), "first");
  EXPECT_EQ(made.requeue_after, Duration::zero()) << "the next pass tells the coordinator";
  world.report->save_answer = SaveAnswer{"earlier", 90, ""};
  look();
  EXPECT_EQ(save_request(world.job), "first");
  world.report->save_answer = SaveAnswer{"first", 120, ""};
  EXPECT_THAT(events(look()), ElementsAre(kCheckpointSaved));
  EXPECT_EQ(checkpoint()->outcome, RequestOutcome::kDone);
  EXPECT_EQ(save_request(world.job), "");
  EXPECT_THAT(events(look(seconds(1))), IsEmpty()) << "the annotation stays, and is answered";
  ask(api::kCheckpointRequest, "second");
  EXPECT_EQ(save_request(world.job), "second");
}

TEST_F(PlanRequestsTest, CheckpointThatFailsSaysSo) {
  ask(api::kCheckpointRequest, "first");
  world.report->save_answer = SaveAnswer{"first", 120, "no space left"};
  EXPECT_THAT(events(look()), ElementsAre(kCheckpointNotSaved));
  EXPECT_EQ(checkpoint()->outcome, RequestOutcome::kFailed);
  EXPECT_EQ(checkpoint()->message, "no space left");
}

TEST_F(PlanRequestsTest, CheckpointIsRefusedWhereNobodyCanSaveIt) {
  world.keeps_checkpoints = false;
  EXPECT_THAT(events(ask(api::kCheckpointRequest, "pods")), ElementsAre(kCheckpointRefused));
  EXPECT_EQ(checkpoint()->outcome, RequestOutcome::kRefused);
  world.keeps_checkpoints = true;
  EXPECT_EQ(checkpoint_obstacle(world.job), "");
  world.job.status.phase = api::Phase::kStarting;
  EXPECT_NE(checkpoint_obstacle(world.job), "");
  world.job.status.phase = api::Phase::kSucceeded;
  EXPECT_NE(checkpoint_obstacle(world.job), "");
  world.job.status.phase = api::Phase::kRunning;
  world.job.spec.training.reset();
  EXPECT_NE(checkpoint_obstacle(world.job), "") << "a program of its own";
}

TEST_F(PlanRequestsTest, CheckpointOfAJobThatIsSuspendedMeanwhileFails) {
  ask(api::kCheckpointRequest, "first");
  world.job.spec.run_policy.suspend = true;
  EXPECT_THAT(events(look()), Contains(kCheckpointNotSaved));
  EXPECT_EQ(checkpoint()->outcome, RequestOutcome::kFailed);
  EXPECT_EQ(save_request(world.job), "");
}

TEST_F(PlanRequestsTest, CheckpointThatNobodySavesFailsInTheEnd) {
  ask(api::kCheckpointRequest, "first");
  EXPECT_THAT(events(look(kCheckpointTimeout - seconds(1))), IsEmpty());
  EXPECT_EQ(checkpoint()->outcome, RequestOutcome::kUnderWay);
  EXPECT_THAT(events(look(seconds(1))), ElementsAre(kCheckpointNotSaved));
  EXPECT_EQ(checkpoint()->outcome, RequestOutcome::kFailed);
  EXPECT_THAT(events(look(seconds(1))), IsEmpty());
}

TEST_F(PlanRequestsTest, SuccessorComesFirstAndUsesNoBudget) {
  const int before = replacements_left(world.job, world.now);
  EXPECT_THAT(events(ask(api::kReplaceRequest, "worker-1@now")), ElementsAre(kMemberReplacing));
  EXPECT_EQ(replace()->outcome, RequestOutcome::kDone);
  ASSERT_EQ(told().size(), 1U);
  EXPECT_EQ(told()[0].cause, api::StragglerCause::kRequested);
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kUnderWay);
  EXPECT_EQ(told()[0].pod, "fashion-worker-1-0");
  EXPECT_EQ(told()[0].host, "node-b");
  EXPECT_EQ(handover_of(world.job), (Incarnation{Role::kWorker, 1, 1}));
  const auto created = actions_of<CreatePod>(look());
  ASSERT_EQ(created.size(), 1U);
  EXPECT_EQ(created[0].spec.name, "fashion-worker-1-1");
  EXPECT_EQ(created[0].spec.avoid_host, "node-b");
  world.report->cleared = {"fashion-worker-1-0"};
  look(seconds(1));
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kUnderWay) << "it was not asked for because it is slow";
  world.report->handed_over = handover_of(world.job);
  EXPECT_THAT(events(look()), ElementsAre(kMemberHandedOver));
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kReplaced);
  EXPECT_EQ(replacements_left(world.job, world.now), before);
  EXPECT_THAT(slow_hosts(world.job, world.now), IsEmpty()) << "nobody says that its node is slow";
  EXPECT_EQ(world.job.status.restarts.total, 0);
  look();
  EXPECT_EQ(told().size(), 1U) << "the annotation stays, and is answered";
}

TEST_F(PlanRequestsTest, SuccessorThatNeverComesIsGivenUp) {
  ask(api::kReplaceRequest, "worker-1@now");
  look();
  EXPECT_THAT(events(look(kHandoverTimeout)), ElementsAre(kMemberKept));
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kNoSuccessor);
  ask(api::kReplaceRequest, "worker-1@again");
  EXPECT_EQ(told().size(), 2U) << "another text is another request";
}

TEST_F(PlanRequestsTest, OneMemberIsReplacedAtATime) {
  ask(api::kReplaceRequest, "worker-1@now");
  EXPECT_THAT(events(ask(api::kReplaceRequest, "worker-2@now")), ElementsAre(kReplacementRefused));
  EXPECT_EQ(replace()->outcome, RequestOutcome::kRefused);
  EXPECT_EQ(told().size(), 1U);
}

TEST_F(PlanRequestsTest, ReplacementIsRefusedWhereNoSuccessorCanTakeOver) {
  const api::Member worker{Role::kWorker, 1};
  EXPECT_EQ(replace_obstacle(world.job, worker), "");
  EXPECT_NE(replace_obstacle(world.job, {Role::kWorker, 3}), "") << "there is no worker-3";
  EXPECT_NE(replace_obstacle(world.job, {Role::kServer, 0}), "");
  EXPECT_NE(replace_obstacle(world.job, {Role::kChief, 0}), "") << "its restartPolicy is Never";
  const auto refuses = [&](auto change) {
    api::TrainingJob job = world.job;
    change(job);
    return !replace_obstacle(job, worker).empty();
  };
  EXPECT_TRUE(refuses([](api::TrainingJob& job) { job.spec.training.reset(); }));
  EXPECT_TRUE(refuses([](api::TrainingJob& job) { job.status.phase = api::Phase::kSuspended; }));
  EXPECT_TRUE(refuses([](api::TrainingJob& job) { job.status.phase = api::Phase::kFailed; }));
  EXPECT_TRUE(
      refuses([](api::TrainingJob& job) { job.spec.strategy.type = api::StrategyType::kParameterServer; }));
  EXPECT_TRUE(refuses([](api::TrainingJob& job) {
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kNever;
  }));
  api::TrainingJob never = world.job;
  never.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kNever;
  EXPECT_FALSE(replace_obstacle(never, worker).empty());
  EXPECT_THAT(events(ask(api::kReplaceRequest, "somebody")), ElementsAre(kReplacementRefused));
  EXPECT_THAT(events(ask(api::kReplaceRequest, "worker-9@now")), ElementsAre(kReplacementRefused));
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(PlanRequestsTest, LongTextsAreAnsweredOnce) {
  std::string text(255, 'x');
  text += "\xC3\xA9\xC3\xA9";  // the bound is in the middle of a character
  ask(api::kCheckpointRequest, text);
  ASSERT_TRUE(checkpoint().has_value());
  EXPECT_EQ(checkpoint()->text, std::string(255, 'x'));
  world.report->save_answer = SaveAnswer{checkpoint()->text, 120, ""};
  look();
  EXPECT_EQ(checkpoint()->outcome, RequestOutcome::kDone);
  look();
  EXPECT_EQ(checkpoint()->outcome, RequestOutcome::kDone);
}

}  // namespace
}  // namespace paceline::plan
