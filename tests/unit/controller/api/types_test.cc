#include "controller/api/types.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::api {
namespace {

TEST(Types, ChiefAndWorkersTrain) {
  TrainingJob job;
  EXPECT_EQ(trainer_count(job), 0);
  job.spec.replica_specs.chief = ReplicaSpec{};
  EXPECT_EQ(trainer_count(job), 1);
  job.spec.replica_specs.worker = ReplicaSpec{.replicas = 3};
  EXPECT_EQ(trainer_count(job), 4);
  EXPECT_EQ(units_per_step(job), 4);
  EXPECT_EQ(gradients_per_step(job), 4);
  job.spec.strategy.backup_workers = 1;
  EXPECT_EQ(units_per_step(job), 3);
  EXPECT_EQ(gradients_per_step(job), 3);
  job.spec.strategy.backup_workers = 0;
  job.spec.strategy.parameter_server.gradients_per_step = 2;
  EXPECT_EQ(units_per_step(job), 4) << "the samples of two are left out";
  EXPECT_EQ(gradients_per_step(job), 2);
}

TEST(Types, ServersAreMembersOfTheBuiltInTrainerOnly) {
  TrainingJob job;
  job.spec.replica_specs.worker = ReplicaSpec{.replicas = 3};
  job.spec.replica_specs.ps = ReplicaSpec{.replicas = 2};
  job.spec.replica_specs.evaluator = ReplicaSpec{};
  EXPECT_EQ(member_count(job), 3);
  EXPECT_FALSE(is_member(job, Role::kServer));
  job.spec.training.emplace();
  EXPECT_EQ(member_count(job), 5);
  EXPECT_TRUE(is_member(job, Role::kServer));
  EXPECT_FALSE(is_member(job, Role::kEvaluator));
  EXPECT_FALSE(trains(Role::kServer));
}

TEST(Types, ScopeFollowsFromTheStrategyWhereTheJobSaysNothing) {
  using enum RestartScope;
  TrainingJob job;
  auto& roles = job.spec.replica_specs;
  for (auto* const replica : {&roles.chief, &roles.worker, &roles.ps, &roles.evaluator}) replica->emplace();
  const auto scopes = [&] {
    std::vector<RestartScope> found;
    for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator})
      found.push_back(restart_scope(job, role));
    return found;
  };
  EXPECT_EQ(scopes(), (std::vector{kJob, kJob, kReplica, kReplica})) << "a program of the user's own";
  job.spec.training.emplace();
  job.spec.strategy.type = StrategyType::kParameterServer;
  EXPECT_EQ(scopes(), (std::vector{kJob, kJob, kJob, kReplica}));
  job.spec.strategy.type = StrategyType::kAllReduce;
  roles.ps.reset();
  EXPECT_EQ(restart_scope(job, Role::kChief), kReplica);
  EXPECT_EQ(restart_scope(job, Role::kWorker), kReplica);
  roles.worker->restart_scope = kJob;
  EXPECT_EQ(restart_scope(job, Role::kWorker), kJob);
  EXPECT_EQ(restart_scope(job, Role::kChief), kReplica);
}

TEST(Types, SomebodyElsesConditionsAreTold) {
  Status status;
  for (const char* type : {"QuotaReserved", "Created", "Unready", "Running", "running", ""})
    status.conditions.push_back({.type = type});
  keep_our_conditions(status);
  ASSERT_EQ(status.conditions.size(), 2u);
  EXPECT_EQ(status.conditions[0].type, "Created");
  EXPECT_EQ(status.conditions[1].type, "Running");
}

TEST(Types, NamesAreThoseOfTheYaml) {
  EXPECT_STREQ(name(Phase::kFailed), "Failed");
  EXPECT_STREQ(name(Algorithm::kDirect), "Direct");
  EXPECT_STREQ(name(DataFormat::kCustom), "custom");
  EXPECT_STREQ(name(OptimizerType::kAdamW), "AdamW");
  EXPECT_STREQ(name(Precision::kBf16), "BF16");
}

TEST(Types, KeyIsNamespaceAndName) {
  TrainingJob job;
  job.metadata.name = "digits";
  EXPECT_EQ(job_key(job), "default/digits");
}

}  // namespace
}  // namespace paceline::api
