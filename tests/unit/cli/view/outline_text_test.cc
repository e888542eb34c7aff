#include "cli/view/outline_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

using ::testing::ElementsAre;

api::TrainingJob job_of(int workers, int servers) {
  api::TrainingJob job;
  job.spec.replica_specs.chief = api::ReplicaSpec{1, {}, {}};
  if (workers > 0) job.spec.replica_specs.worker = api::ReplicaSpec{workers, {}, {}};
  if (servers > 0) {
    job.spec.replica_specs.ps = api::ReplicaSpec{servers, {}, {}};
    job.spec.strategy.type = api::StrategyType::kParameterServer;
  }
  api::Training& training = job.spec.training.emplace();
  training.global_batch_size = 64;
  training.steps = 2000;
  return job;
}

TEST(OutlineText, OfAnAllReduce) {
  api::TrainingJob job = job_of(3, 0);
  EXPECT_EQ(members_text(job), "4 members that train together");
  EXPECT_EQ(members_text(job_of(0, 0)), "1 member");
  EXPECT_THAT(outline_lines(job), ElementsAre("each step: 64 samples, 16 for each member",
                                              "ends after 2,000 steps", unsaved_text(job)));
  job.spec.training->target = api::Target{.accuracy = 0.97};
  job.spec.training->steps.reset();
  job.spec.training->epochs = 2.5;
  job.spec.training->global_batch_size = 66;
  EXPECT_NE(unsaved_text(job), "");
  job.spec.checkpoint.every_steps = 100;
  EXPECT_EQ(unsaved_text(job), "");
  job.spec.checkpoint.every_seconds = 90;
  job.spec.replica_specs.evaluator = api::ReplicaSpec{1, {}, {}};
  EXPECT_THAT(outline_lines(job),
              ElementsAre("each step: 66 samples, 16 or one more for each member",
                          "ends when accuracy >= 0.97, else after 2.5 epochs",
                          "a checkpoint every 100 steps and every 1 min 30 s, the newest 3 are kept",
                          "an evaluator looks at each checkpoint, beside the training"));
}

TEST(OutlineText, PartialStepsAndTheCheckBeforeTheFirstStepAreNamed) {
  api::TrainingJob job = job_of(3, 0);
  EXPECT_EQ(preflight_text(job), "");
  EXPECT_EQ(partial_steps_text(job), "");
  job.spec.preflight = api::PreflightPolicy{.factor = 1.5};
  job.spec.strategy.all_reduce.max_drop_rate = 0.07;
  EXPECT_THAT(outline_lines(job),
              ElementsAre("each step: 64 samples, 16 for each member",
                          "a member that is out of time leaves out the rest of its samples of a step: at "
                          "most 7 % of all",
                          "members are tested before the first step; one that takes more than 1.5 times the "
                          "others' median is replaced within the budget of stragglers",
                          "ends after 2,000 steps", unsaved_text(job)));
  job.spec.preflight->action = api::PreflightAction::kReport;
  EXPECT_THAT(preflight_text(job), ::testing::EndsWith("median is told of, and trains"));
}

TEST(OutlineText, OfServersSaysWhatIsWaitedFor) {
  const auto mode = [](const api::TrainingJob& job) { return outline_lines(job).at(1); };
  api::TrainingJob job = job_of(3, 1);
  EXPECT_EQ(members_text(job), "4 members that train together, 1 server that holds the weights");
  EXPECT_EQ(mode(job), "synchronous: a step is one update, of everybody's gradients");
  job.spec.strategy.backup_workers = 1;
  EXPECT_EQ(mode(job), "each step counts the first 3 of 4 gradients: all 64 samples");
  job = job_of(3, 2);
  job.spec.strategy.synchronization = api::Synchronization::kBoundedStaleness;
  job.spec.strategy.parameter_server.staleness = 4;
  EXPECT_EQ(members_text(job), "4 members that train side by side, 2 servers that hold the weights");
  EXPECT_EQ(
      mode(job),
      "bounded staleness: each gradient is an update; no member is more than 4 steps ahead of the slowest");
  job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
  EXPECT_EQ(mode(job), "asynchronous: each gradient is an update as it comes; nobody waits");
  job.spec.strategy.parameter_server.delay_compensation = 0.5;
  EXPECT_EQ(mode(job),
            "asynchronous: each gradient is an update as it comes; nobody waits; delay compensation 0.5");
}

}  // namespace
}  // namespace paceline::cli
