#include "controller/dashboard/job_samples.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/fake_clock.h"

namespace paceline::dashboard {
namespace {

kube::Json status_at(Step step, int members = 0) {
  kube::Json list = kube::Json::array();
  for (int i = 0; i < members; ++i) list.push_back({{"role", "worker"}, {"index", i}, {"stepMs", 20.0}});
  return {{"status", {{"phase", "Running"}, {"progress", {{"step", step}}}, {"members", list}}}};
}

kube::Json ended_at(Step step) {
  kube::Json ended = status_at(step);
  ended["status"]["phase"] = "Succeeded";
  return ended;
}

constexpr int kLarge = StatusSamples::kMembers;

// Large jobs come until there is room for no other one; how many have samples.
int fill(JobSamples& samples) {
  int count = 0;
  while (samples.add(str_cat("large-", count), status_at(1, kLarge))) ++count;
  return count;
}

TEST(JobSamplesTest, NewStepsAreTold) {
  FakeClock clock;
  JobSamples samples(clock);
  EXPECT_FALSE(samples.add("a", status_at(0)));
  EXPECT_EQ(samples.add("a", status_at(5))->newest, 5);
  EXPECT_FALSE(samples.add("a", status_at(5)));
  EXPECT_EQ(samples.add("a", status_at(6))->version, 2U);
  EXPECT_EQ(samples.of("a").newest(), 6);
  EXPECT_EQ(samples.of("b").newest(), -1);
  samples.forget("a");
  EXPECT_EQ(samples.of("a").newest(), -1);
}

TEST(JobSamplesTest, AThousandJobsOfEightMembersHaveTheirs) {
  FakeClock clock;
  JobSamples samples(clock);
  for (const Step step : {1, 2, 3}) {
    for (int i = 0; i < 1000; ++i) {
      clock.advance(std::chrono::milliseconds(10));
      (void)samples.add(str_cat("job-", i), status_at(step, 8));
    }
  }
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(samples.of(str_cat("job-", i)).version(), 3U) << i;
  }
  // To the last of their samples.
  EXPECT_LE(1000 * StatusSamples::cells_for(status_at(1, 8)), JobSamples::kMostCells);
}

TEST(JobSamplesTest, JobsThatGoOnKeepTheirsWhereThereIsNoRoom) {
  FakeClock clock;
  JobSamples samples(clock);
  const int count = fill(samples);
  EXPECT_GE(count, 90);
  EXPECT_EQ(samples.of(str_cat("large-", count)).newest(), -1);
  for (int i = 0; i < count; ++i) {
    for (const Step step : {2, 3, 4}) EXPECT_TRUE(samples.add(str_cat("large-", i), status_at(step, kLarge)));
    EXPECT_EQ(samples.of(str_cat("large-", i)).newest(), 4);
  }
  samples.forget("large-0");
  EXPECT_TRUE(samples.add("new", status_at(1, kLarge)));
}

TEST(JobSamplesTest, TheOneThatEndedLongestAgoGoes) {
  FakeClock clock;
  JobSamples samples(clock);
  for (Step step = 1; step <= 5; ++step) {
    for (const char* const uid : {"a", "b"}) EXPECT_TRUE(samples.add(uid, status_at(step, kLarge)));
  }
  for (const char* const uid : {"b", "a"}) {
    clock.advance(std::chrono::seconds(1));
    EXPECT_FALSE(samples.add(uid, ended_at(6)));
    EXPECT_EQ(samples.of(uid).newest(), 5);
  }
  const auto is_kept = [&](const char* uid) { return samples.of(uid).newest() == 5; };
  int i = 0;
  while (is_kept("a") && is_kept("b")) EXPECT_TRUE(samples.add(str_cat("small-", i++), status_at(1)));
  EXPECT_TRUE(is_kept("a"));
  EXPECT_TRUE(samples.add("another", status_at(1)));
  while (is_kept("a") && samples.add(str_cat("small-", i++), status_at(1))) {
  }
  EXPECT_FALSE(is_kept("a"));
}

// The history goes by their numbers.
TEST(JobSamplesTest, AJobThatComesBackRepeatsNoNumber) {
  FakeClock clock;
  JobSamples samples(clock);
  for (const Step step : {1, 2, 3}) (void)samples.add("a", status_at(step));
  (void)samples.add("a", ended_at(3));
  const int count = fill(samples);
  EXPECT_EQ(samples.of("a").version(), 0U);
  samples.forget(str_cat("large-", count - 1));
  EXPECT_EQ(samples.add("a", status_at(4))->version, 4U);
}

TEST(JobSamplesTest, AJobThatGrowsKeepsFewerWhereThereIsNoRoom) {
  FakeClock clock;
  JobSamples samples(clock);
  EXPECT_TRUE(samples.add("a", status_at(1, 1)));
  (void)fill(samples);
  std::size_t i = 0;
  while (samples.add(str_cat("small-", i), status_at(1))) ++i;
  for (Step step = 2; step <= 50; ++step) EXPECT_TRUE(samples.add("a", status_at(step, kLarge)));
  EXPECT_LE(samples.of("a").cells(), StatusSamples::cells_for(status_at(1, 1)));
  EXPECT_EQ(samples.of("a").newest(), 50);
}

}  // namespace
}  // namespace paceline::dashboard
