#include "controller/dashboard/job_samples.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/fake_clock.h"

namespace paceline::dashboard {
namespace {

kube::Json status_at(Step step) {
  return {{"status", {{"phase", "Running"}, {"progress", {{"step", step}}}}}};
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

TEST(JobSamplesTest, TheOneThatChangedLongestAgoGoes) {
  FakeClock clock;
  JobSamples samples(clock);
  for (std::size_t i = 0; i <= JobSamples::kMost; ++i) {
    clock.advance(std::chrono::seconds(1));
    (void)samples.add(str_cat("job-", i), status_at(1));
  }
  EXPECT_EQ(samples.of("job-0").newest(), -1);
  EXPECT_EQ(samples.of("job-1").newest(), 1);
}

}  // namespace
}  // namespace paceline::dashboard
