#include "cli/cluster/names.h"

#include <gtest/gtest.h>

#include "cli/cluster/event_rows.h"
#include "controller/cluster/kube/times.h"
#include "tests/unit/cli/cluster/job_json.h"

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

TEST(EventRowsTest, OfAJobAndItsPodsAlone) {
  const auto about = [](const char* kind, const char* name, std::string_view job) {
    return is_about(event_object("e", kind, name, "R", ""), job);
  };
  EXPECT_TRUE(about("TrainingJob", "digits", "digits"));
  EXPECT_FALSE(about("TrainingJob", "digits-2", "digits"));
  EXPECT_TRUE(about("Pod", "digits-worker-1-0", "digits"));
  EXPECT_TRUE(about("Pod", "digits-ps-10-12", "digits"));
  EXPECT_FALSE(about("Pod", "digits-2-worker-1-0", "digits"));
  EXPECT_FALSE(about("Pod", "digits-worker-1", "digits"));
  EXPECT_FALSE(about("Pod", "digits-boss-1-0", "digits"));
  EXPECT_FALSE(about("Node", "digits", "digits"));
  EXPECT_TRUE(about("Pod", "any-worker-1-0", ""));
  EXPECT_FALSE(about("Pod", "nginx-5d4f-1", ""));
}

// Seconds after noon.
std::int64_t age_of(const kube::Json& event) {
  const WallTime noon = *kube::parse_time("2026-01-31T12:00:00Z");
  return std::chrono::duration_cast<std::chrono::seconds>(read_event(event).last.value_or(WallTime()) - noon)
      .count();
}

TEST(EventRowsTest, TimesOfBothKindsOfEvents) {
  kube::Json event = event_object("e", "TrainingJob", "digits", "R", "2026-01-31T12:00:00Z");
  EXPECT_EQ(age_of(event), 0);
  event["series"] = {{"count", 3}, {"lastObservedTime", "2026-01-31T12:00:30.000000Z"}};
  EXPECT_EQ(age_of(event), 30);
  EXPECT_EQ(read_event(event).count, 3);
  event.erase("series");
  event["lastTimestamp"] = nullptr;
  event["eventTime"] = "2026-01-31T12:00:20.000000Z";
  EXPECT_EQ(age_of(event), 20);
}

}  // namespace
}  // namespace paceline::cli
