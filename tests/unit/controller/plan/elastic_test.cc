#include "controller/plan/elastic.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/plan/world.h"

// The stories of losses are testdata/elastic.txt.

namespace paceline::plan {
namespace {

using enum api::RestartPolicy;

TEST(ElasticTest, RingsWhoseMembersMayStartAgainAreElastic) {
  api::TrainingJob job = make_job(1, 2);
  EXPECT_FALSE(is_elastic(job)) << "Never, and all are needed";
  job.spec.replica_specs.worker->restart_policy = kOnFailure;
  EXPECT_TRUE(is_elastic(job));
  EXPECT_TRUE(is_elastic(job, Role::kChief));
  EXPECT_FALSE(is_elastic(job, Role::kEvaluator));
  job.spec.strategy.type = api::StrategyType::kParameterServer;
  EXPECT_FALSE(is_elastic(job)) << "the state is the servers'";
}

TEST(ElasticTest, SmallerRingsAreElasticWithoutReplacement) {
  api::TrainingJob job = make_job(1, 2);
  EXPECT_EQ(least_trainers(job), std::nullopt);
  EXPECT_EQ(min_trainers(job), 1);
  job.spec.replica_specs.worker->min_replicas = 2;
  EXPECT_TRUE(is_elastic(job));
  EXPECT_EQ(least_trainers(job), 2);
  EXPECT_EQ(min_trainers(job), 2);
}

TEST(ElasticTest, JobsWhoseOwnProgramTrainsAreNot) {
  api::TrainingJob job = make_job(1, 2);
  job.spec.replica_specs.worker->restart_policy = kAlways;
  job.spec.training.reset();
  EXPECT_FALSE(is_elastic(job));
}

}  // namespace
}  // namespace paceline::plan
