#include "controller/dashboard/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "controller/cluster/kube/times.h"

namespace paceline::dashboard {
namespace {

using kube::Json;
using ::testing::ElementsAre;

jobs::EventView event(const char* time, const char* reason, bool warning = false) {
  return {.last = kube::parse_time(time),
          .warning = warning,
          .reason = reason,
          .object = "tj/digits",
          .message = "words"};
}

std::vector<std::string> kinds(const Json& timeline) {
  std::vector<std::string> names;
  for (const Json& item : timeline["items"]) names.push_back(item["kind"]);
  return names;
}

const Json kObject = Json::parse(R"({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {
    "view": {"change": {"came": ["worker-3"], "left": ["worker-1"], "step": 40}},
    "stragglers": [{"role": "worker", "index": 2, "since": "2026-01-01T00:00:30Z", "sinceStep": 25}],
    "stragglerReplacements": [{"role": "worker", "index": 2, "at": "2026-01-01T00:00:40Z", "ended": "2026-01-01T00:00:50Z"}]}})");

TEST(TimelineTest, EventsHaveKindsAndTimes) {
  const Json timeline = timeline_json(
      kObject,
      {event("2026-01-01T00:00:01Z", "MembersTrain"), event("2026-01-01T00:00:10Z", "ViewChanged"),
       event("2026-01-01T00:00:20Z", "MemberLost", true),
       event("2026-01-01T00:00:30Z", "StragglerDetected", true),
       event("2026-01-01T00:00:40Z", "StragglerReplacing"), event("2026-01-01T00:00:50Z", "ViewChanged")},
      {});
  EXPECT_THAT(kinds(timeline), ElementsAre("Phase", "View", "Lost", "Straggler", "Replacement", "View"));
  const Json& items = timeline["items"];
  EXPECT_EQ(items[0]["seconds"], 1.0);
  EXPECT_EQ(items[2]["severity"], "Warning");
  EXPECT_FALSE(items[1].contains("members")) << "the status tells of the newest view alone";
  EXPECT_EQ(items[5]["members"], Json({"worker-3", "worker-1"}));
  EXPECT_EQ(items[5]["step"], 40);
  EXPECT_EQ(items[3]["members"], Json::array({"worker-2"}));
  EXPECT_EQ(items[3]["step"], 25);
  EXPECT_EQ(items[4]["endSeconds"], 50.0);
}

TEST(TimelineTest, EvaluationsStandAmongEvents) {
  const Json timeline = timeline_json(
      kObject, {event("2026-01-01T00:00:01Z", "MembersTrain"), event("2026-01-01T00:00:20Z", "Suspended")},
      {{.step = 100, .loss = 0.5, .accuracy = 0.75, .seconds = 10}});
  EXPECT_THAT(kinds(timeline), ElementsAre("Phase", "Evaluation", "Phase"));
  EXPECT_EQ(timeline["items"][1]["step"], 100);
  EXPECT_EQ(timeline["items"][1]["text"], "loss 0.5000, accuracy 75.00 %");
}

TEST(TimelineTest, FiguresOfEvaluationsAreShortAndThoseThatAreKnown) {
  const double nan = std::nan("");
  const auto text = [](const EvaluationPoint& point) {
    return timeline_json(kObject, {}, {point})["items"][0]["text"];
  };
  EXPECT_EQ(text({.step = 1, .loss = 0.000123456, .accuracy = nan, .seconds = 1, .auc = 0.78125}),
            "loss 1.235e-04, AUC 0.7812");
  EXPECT_EQ(text({.step = 1, .loss = nan, .accuracy = 1.0 / 3, .seconds = 1}), "accuracy 33.33 %");
}

// The status has the time of the resumption, and the events of the first start are gone after an hour.
TEST(TimelineTest, ResumedJobsBeginAtTheirCreation) {
  Json object = kObject;
  object["status"]["startTime"] = "2026-01-01T01:00:00Z";
  const Json timeline = timeline_json(
      object, {event("2026-01-01T00:30:00Z", "Suspended"), event("2026-01-01T01:00:00Z", "Resumed")}, {});
  std::vector<double> seconds;
  for (const Json& item : timeline["items"]) seconds.push_back(item["seconds"]);
  EXPECT_THAT(seconds, ElementsAre(1800, 3600));
}

TEST(TimelineTest, RequestsHaveKinds) {
  const Json timeline = timeline_json(
      kObject,
      {event("2026-01-01T00:00:10Z", "CheckpointSaved"),
       event("2026-01-01T00:00:20Z", "CheckpointRefused", true),
       event("2026-01-01T00:00:40Z", "MemberReplacing"), event("2026-01-01T00:00:50Z", "MemberHandedOver")},
      {});
  EXPECT_THAT(kinds(timeline), ElementsAre("Checkpoint", "Checkpoint", "Replacement", "Replacement"));
  EXPECT_EQ(timeline["items"][2]["endSeconds"], 50.0);
}

TEST(TimelineTest, PhasesAreNamed) {
  Json object = kObject;
  object["status"]["phase"] = "Succeeded";
  object["status"]["reason"] = "TrainingFinished";
  const Json timeline = timeline_json(
      object,
      {event("2026-01-01T00:00:01Z", "CreatingPods"), event("2026-01-01T00:00:02Z", "MembersTrain"),
       event("2026-01-01T00:00:03Z", "PodNotCreated"), event("2026-01-01T00:00:04Z", "Suspended"),
       event("2026-01-01T00:00:05Z", "TrainingFinished")},
      {});
  std::vector<std::string> phases;
  for (const Json& item : timeline["items"]) phases.push_back(item.value("phase", ""));
  EXPECT_THAT(phases, ElementsAre("Starting", "Running", "", "Suspended", "Succeeded"));
}

TEST(TimelineTest, PhasesAreNotWhatHappensToPodsNorWhatKeepsAJobFromOne) {
  jobs::EventView pulled = event("2026-01-01T00:00:02Z", "Pulled");
  pulled.object = "pod/digits-worker-0-0";
  const Json timeline = timeline_json(
      kObject,
      {event("2026-01-01T00:00:01Z", "MembersTrain"), pulled, event("2026-01-01T00:00:03Z", "PodNotCreated")},
      {});
  EXPECT_THAT(kinds(timeline), ElementsAre("Phase", "Pod", "Note"));
}

TEST(TimelineTest, JobsWithoutAnythingHaveNone) {
  EXPECT_EQ(timeline_json(Json::object(), {}, {}), (Json{{"items", Json::array()}}));
}

TEST(TimelineTest, TheNewestAreKept) {
  const std::vector<jobs::EventView> many(kMostItems + 5, event("2026-01-01T00:00:01Z", "ViewChanged"));
  EXPECT_EQ(timeline_json(kObject, many, {})["items"].size(), kMostItems);
}

TEST(TimelineTest, EventsAreTold) {
  jobs::EventView one = event("2026-01-01T00:00:01Z", "MemberLost", true);
  one.count = 3;
  EXPECT_EQ(events_json({one}),
            Json::parse(R"({"events": [{"time": "2026-01-01T00:00:01.000Z", "type": "Warning",
      "reason": "MemberLost", "object": "tj/digits", "message": "words", "count": 3}]})"));
}

}  // namespace
}  // namespace paceline::dashboard
