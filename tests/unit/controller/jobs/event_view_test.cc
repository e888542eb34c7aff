#include "controller/jobs/event_view.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "controller/cluster/kube/times.h"

namespace paceline::jobs {
namespace {

kube::Json event_object(const std::string& kind, const std::string& object) {
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", "e"}}},
          {"involvedObject", {{"kind", kind}, {"name", object}}},
          {"lastTimestamp", "2026-01-31T12:00:00Z"}};
}

TEST(EventViewTest, EventsAreOfAJobAndItsPodsAlone) {
  const auto about = [](const char* kind, const char* name, std::string_view job) {
    return is_about(event_object(kind, name), job);
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

TEST(EventViewTest, TimesOfBothKindsOfEvents) {
  kube::Json event = event_object("TrainingJob", "digits");
  EXPECT_EQ(age_of(event), 0);
  event["series"] = {{"count", 3}, {"lastObservedTime", "2026-01-31T12:00:30.000000Z"}};
  EXPECT_EQ(age_of(event), 30);
  EXPECT_EQ(read_event(event).count, 3);
  event.erase("series");
  event["lastTimestamp"] = nullptr;
  event["eventTime"] = "2026-01-31T12:00:20.000000Z";
  EXPECT_EQ(age_of(event), 20);
}

TEST(EventViewTest, TheNewestAreKept) {
  std::vector<EventView> events;
  for (const int second : {3, 0, 4, 1, 2}) {
    EventView event;
    event.key = str_cat(second);
    if (second > 0) event.last = WallTime(std::chrono::seconds(second));
    events.push_back(std::move(event));
  }
  keep_newest(events, 5);
  EXPECT_EQ(events.size(), 5U);
  keep_newest(events, 2);
  sort_events(events);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].key, "3");
  EXPECT_EQ(events[1].key, "4");
  keep_newest(events, 0);
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace paceline::jobs
