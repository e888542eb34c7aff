#include "controller/cluster/kube/event_series.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;

class EventSeriesTest : public ::testing::Test {
 protected:
  EventSeries series_;
  TimePoint now_{1h};
  EventSeries::Action take(const std::string& message, const std::string& job = "j") {
    return series_.take({"n", job, true, "Reason", message}, now_, 7);
  }
  template <typename T>
  static bool is(const EventSeries::Action& action) {
    return std::holds_alternative<T>(action);
  }
};

TEST_F(EventSeriesTest, TheSameEventCountsUp) {
  const auto first = take("a");
  ASSERT_TRUE(is<EventSeries::Create>(first));
  EXPECT_TRUE(is<EventSeries::Nothing>(take("a")));
  now_ += kSeriesWrite;
  const auto third = take("a");
  ASSERT_TRUE(is<EventSeries::Count>(third));
  EXPECT_EQ(std::get<EventSeries::Count>(third).count, 3);
  EXPECT_EQ(std::get<EventSeries::Count>(third).name, std::get<EventSeries::Create>(first).name);
}

TEST_F(EventSeriesTest, AfterALongTimeItIsANewOne) {
  take("a");
  now_ += kSeriesTime;
  EXPECT_TRUE(is<EventSeries::Count>(take("a")));
  now_ += kSeriesTime + 1ns;
  EXPECT_TRUE(is<EventSeries::Create>(take("a")));
}

TEST_F(EventSeriesTest, WhateverDiffersIsAnotherOne) {
  const cluster::Event kEvents[] = {{"n", "j", true, "R", "m"}, {"o", "j", true, "R", "m"},
                                    {"n", "k", true, "R", "m"}, {"n", "j", false, "R", "m"},
                                    {"n", "j", true, "S", "m"}, {"n", "j", true, "R", "o"}};
  std::set<std::string> names;
  for (const cluster::Event& event : kEvents) {
    const auto action = series_.take(event, now_, 7);
    ASSERT_TRUE(is<EventSeries::Create>(action));
    names.insert(std::get<EventSeries::Create>(action).name);
  }
  EXPECT_EQ(names.size(), std::size(kEvents));
  EXPECT_TRUE(names.begin()->starts_with("j."));
}

TEST_F(EventSeriesTest, OtherControllersGiveOtherNames) {
  EventSeries other;
  const cluster::Event event{"n", "j", true, "R", "m"};
  EXPECT_NE(std::get<EventSeries::Create>(series_.take(event, now_, 1)).name,
            std::get<EventSeries::Create>(other.take(event, now_, 2)).name);
}

TEST_F(EventSeriesTest, AJobsNewEventsAreBounded) {
  int created = 0;
  for (int i = 0; i < 1000; ++i) created += is<EventSeries::Create>(take(str_cat("message ", i))) ? 1 : 0;
  EXPECT_EQ(created, kEventBurst);
  EXPECT_TRUE(is<EventSeries::Drop>(take("one more")));
  EXPECT_TRUE(is<EventSeries::Create>(take("of another job", "k")));
  EXPECT_TRUE(is<EventSeries::Create>(series_.take({"n", "j", true, "R", "m", "uid-2"}, now_, 7)))
      << "of the next job of this name";
  now_ += kEventEvery;
  EXPECT_TRUE(is<EventSeries::Create>(take("later")));
  EXPECT_TRUE(is<EventSeries::Drop>(take("and again")));
}

TEST_F(EventSeriesTest, ForgottenEventIsCreatedAgain) {
  take("a");
  series_.forget({"n", "j", true, "Reason", "a"});
  EXPECT_TRUE(is<EventSeries::Create>(take("a")));
}

TEST_F(EventSeriesTest, ItRemembersNoMoreThanItMay) {
  for (std::size_t i = 0; i < 2 * kMaxSeries + 10; ++i) {
    ASSERT_TRUE(is<EventSeries::Create>(take("a", str_cat("job-", i))));
  }
}

}  // namespace
}  // namespace paceline::kube
