#include "controller/dashboard/job_feed.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

Json listed_job(const std::string& name, const std::string& uid, int step = 0) {
  return {
      {"metadata", {{"namespace", "a"}, {"name", name}, {"uid", uid}, {"managedFields", Json::array({1})}}},
      {"status", {{"phase", "Running"}, {"progress", {{"step", step}}}}}};
}

class JobFeedTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  Board board_{clock_};
  JobSamples samples_{clock_};
  JobFeed feed_{board_, samples_, /*history=*/nullptr};
  kube::ObjectSink::Keys changed_;
};

TEST_F(JobFeedTest, ObjectsComeAndGo) {
  feed_.put(listed_job("x", "1"), 1, changed_);
  const auto known = board_.object("a/x");
  ASSERT_NE(known, nullptr);
  EXPECT_FALSE(kube::at(*known, {"metadata"}).contains("managedFields"));
  EXPECT_EQ((*known)["kind"], "TrainingJob");
  feed_.remove(listed_job("x", "2"), changed_);  // of an earlier one
  EXPECT_NE(board_.object("a/x"), nullptr);
  feed_.remove(listed_job("x", "1"), changed_);
  EXPECT_EQ(board_.object("a/x"), nullptr);
}

TEST_F(JobFeedTest, ObjectsThatAListLacksGo) {
  feed_.put(listed_job("x", "1"), 1, changed_);
  feed_.put(listed_job("y", "2"), 1, changed_);
  feed_.put(listed_job("y", "2"), 2, changed_);
  feed_.sweep(2, "", changed_);
  EXPECT_EQ(board_.object("a/x"), nullptr);
  EXPECT_NE(board_.object("a/y"), nullptr);
}

TEST_F(JobFeedTest, SeriesAreOfOneJob) {
  feed_.put(listed_job("x", "1", 5), 1, changed_);
  EXPECT_EQ(samples_.of("1").newest(), 5);
  feed_.put(listed_job("x", "2", 3), 1, changed_);  // another one of this name
  EXPECT_EQ(samples_.of("1").newest(), -1);
  EXPECT_EQ(samples_.of("2").newest(), 3);
}

TEST_F(JobFeedTest, ReadersHearOfNewSteps) {
  feed_.put(listed_job("x", "1", 5), 1, changed_);
  board_.look("a/x");
  feed_.put(listed_job("x", "1", 6), 1, changed_);
  EXPECT_EQ(board_.series_of("a/x").newest, 6);
}

}  // namespace
}  // namespace paceline::dashboard
