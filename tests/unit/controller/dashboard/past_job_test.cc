#include "controller/dashboard/past_job.h"

#include <gtest/gtest.h>

#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/times.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

const WallTime kDeletion = *kube::parse_time("2026-01-31T12:00:00Z");

Json job_in(const std::string& phase) {
  return {{"metadata",
           {{"namespace", "a"}, {"name", "x"}, {"uid", "1"}, {"creationTimestamp", "2026-01-31T11:00:00Z"}}},
          {"status", {{"phase", phase}, {"progress", {{"step", 7}, {"etaSeconds", 3}}}}}};
}

TEST(PastJobTest, RecordsTellWhenTheJobWasOver) {
  const history::Record there = record_of(job_in("Running"), std::nullopt, kDeletion);
  EXPECT_EQ(there.uid, "1");
  EXPECT_EQ(there.ns, "a");
  EXPECT_EQ(there.name, "x");
  EXPECT_EQ(there.created, kDeletion - std::chrono::hours(1));
  EXPECT_FALSE(there.over);
  EXPECT_TRUE(record_of(job_in("Succeeded"), std::nullopt, kDeletion).over);
  EXPECT_TRUE(record_of(job_in("Running"), kDeletion, kDeletion).over);
}

TEST(PastJobTest, AJobThatWentOnIsStopped) {
  const Json row = past_row(record_of(job_in("Running"), kDeletion, kDeletion));
  EXPECT_EQ(row["phase"], "Stopped");
  EXPECT_EQ(row["reason"], "Deleted");
  EXPECT_EQ(row["deleted"], "2026-01-31T12:00:00Z");
  EXPECT_EQ(row["finished"], "2026-01-31T12:00:00Z");
  EXPECT_EQ(row["step"], 7);
  EXPECT_FALSE(row.contains("etaSeconds"));
  EXPECT_EQ(past_row(record_of(job_in("Failed"), kDeletion, kDeletion))["phase"], "Failed");
}

TEST(PastJobTest, ObjectsTellOfTheirDeletion) {
  const Json object = past_object(record_of(job_in("Running"), kDeletion, kDeletion));
  EXPECT_EQ(object["metadata"]["annotations"][kube::kDeletedAnnotation], "2026-01-31T12:00:00Z");
  EXPECT_EQ(object["status"], job_in("Running")["status"]);
}

TEST(PastJobTest, NoActionIsAllowed) {
  const Json job = Json::parse(past_job_json(record_of(job_in("Running"), kDeletion, kDeletion)));
  EXPECT_EQ(job["row"]["uid"], "1");
  EXPECT_EQ(job["object"]["metadata"]["name"], "x");
  ASSERT_FALSE(job["actions"].empty());
  for (const Json& action : job["actions"]) EXPECT_EQ(action["allowed"], false);
}

TEST(PastJobTest, TextsThatOthersWroteAreNoErrors) {
  history::Record record = record_of(job_in("Running"), kDeletion, kDeletion);
  record.row = "[";
  record.object = "[1]";
  EXPECT_EQ(past_row(record)["deleted"], "2026-01-31T12:00:00Z");
  EXPECT_TRUE(past_object(record).is_object());
  for (const char* odd : {R"({"metadata":5})", R"({"metadata":{"annotations":[]}})"}) {
    record.object = odd;
    EXPECT_EQ(past_object(record)["metadata"]["annotations"][kube::kDeletedAnnotation],
              "2026-01-31T12:00:00Z")
        << odd;
  }
}

}  // namespace
}  // namespace paceline::dashboard
