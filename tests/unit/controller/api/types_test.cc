#include "controller/api/types.h"

#include <gtest/gtest.h>

namespace paceline::api {
namespace {

TEST(Types, MembersAreChiefAndWorkers) {
  TrainingJob job;
  EXPECT_EQ(member_count(job), 0);
  job.spec.replica_specs.chief = ReplicaSpec{};
  EXPECT_EQ(member_count(job), 1);
  job.spec.replica_specs.worker = ReplicaSpec{.replicas = 3};
  EXPECT_EQ(member_count(job), 4);
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
