#include "cli/cluster/names.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(NamesTest, JobsAsKubectlTakesThem) {
  for (const char* text : {"digits", "tj/digits", "trainingjob/digits", "TrainingJobs/digits",
                           "trainingjob.paceline.dev/digits"}) {
    EXPECT_EQ(job_name_of(text).value(), "digits") << text;
  }
  for (const char* text : {"", "Digits", "pod/digits", "a/b/c", "tj/", "job.yaml", "-x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(job_name_of(text).status())) << text;
  }
  EXPECT_EQ(job_name_of(resource_name("digits")).value(), "digits");
}

TEST(NamesTest, MembersByRoleAndIndex) {
  const auto one = member_pattern("worker/3").value();
  EXPECT_TRUE(one.matches(Role::kWorker, 3));
  EXPECT_FALSE(one.matches(Role::kWorker, 1));
  EXPECT_FALSE(one.matches(Role::kChief, 3));
  EXPECT_TRUE(member_pattern("Worker-3").value().matches(Role::kWorker, 3));
  EXPECT_TRUE(member_pattern("ps").value().matches(Role::kServer, 7));
  EXPECT_TRUE(member_pattern("").value().matches(Role::kEvaluator, 0));
  for (const char* text : {"boss", "worker/", "worker/x", "worker/-1", "worker/1x", "/1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(member_pattern(text).status())) << text;
  }
}

}  // namespace
}  // namespace paceline::cli
