#include "controller/traces/recovery.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace paceline::traces {
namespace {

using nlohmann::json;

std::string ids(char digit) {
  return std::string(2 * kIdBytes, digit).replace(32, 16, std::string(16, 'a'));
}

Recovery a_loss() {
  return {.ns = "team-a",
          .job = "digits",
          .uid = "u1",
          .change = {.generation = Generation{3},
                     .came = {},
                     .left = {"worker-1"},
                     .message = "worker-1 was killed",
                     .noticed_seconds = 0.25,
                     .view_seconds = 0.5,
                     .state_seconds = 0.25,
                     .step_seconds = 1,
                     .step = 121,
                     .steps_lost = 2},
          .end = WallTime(std::chrono::seconds(100)),
          .ids = ids('1')};
}

json spans_of(const Recovery& recovery) {
  const json request = json::parse(export_request({&recovery, 1}, "trainer"));
  return request["resourceSpans"][0]["scopeSpans"][0]["spans"];
}

std::map<std::string, json> attributes_of(const json& span) {
  std::map<std::string, json> found;
  for (const json& each : span["attributes"]) found[each["key"]] = each["value"];
  return found;
}

TEST(RecoveryTest, PartsFollowEachOtherFromTheLastStepToTheNext) {
  const json spans = spans_of(a_loss());
  ASSERT_EQ(spans.size(), 5U);
  EXPECT_EQ(spans[0]["startTimeUnixNano"], "98250000000");
  EXPECT_EQ(spans[0]["endTimeUnixNano"], "100000000000");
  EXPECT_EQ(spans[1]["startTimeUnixNano"], spans[0]["startTimeUnixNano"]);
  EXPECT_EQ(spans[1]["endTimeUnixNano"], "98500000000");
  for (std::size_t i = 2; i < spans.size(); ++i)
    EXPECT_EQ(spans[i]["startTimeUnixNano"], spans[i - 1]["endTimeUnixNano"]);
  EXPECT_EQ(spans[4]["endTimeUnixNano"], spans[0]["endTimeUnixNano"]);
}

TEST(RecoveryTest, PartsAreBelowTheRootAndHaveIdsOfTheirOwn) {
  const json spans = spans_of(a_loss());
  EXPECT_FALSE(spans[0].contains("parentSpanId"));
  EXPECT_EQ(spans[0]["traceId"], std::string(32, '1'));
  EXPECT_EQ(spans[0]["spanId"], std::string(16, 'a'));
  for (std::size_t i = 1; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i]["parentSpanId"], spans[0]["spanId"]);
    EXPECT_EQ(spans[i]["traceId"], spans[0]["traceId"]);
    EXPECT_EQ(spans[i]["spanId"], std::string(16, '1'));
  }
}

TEST(RecoveryTest, RootSaysWhoLeftAndWhatItCost) {
  const auto attributes = attributes_of(spans_of(a_loss())[0]);
  EXPECT_EQ(attributes.at("paceline.job")["stringValue"], "digits");
  EXPECT_EQ(attributes.at("paceline.job.uid")["stringValue"], "u1");
  EXPECT_EQ(attributes.at("k8s.namespace.name")["stringValue"], "team-a");
  EXPECT_EQ(attributes.at("paceline.view.generation")["intValue"], "3");
  EXPECT_EQ(attributes.at("paceline.view.left")["arrayValue"]["values"][0]["stringValue"], "worker-1");
  EXPECT_EQ(attributes.at("paceline.step")["intValue"], "121");
  EXPECT_EQ(attributes.at("paceline.steps_lost")["intValue"], "2");
}

TEST(RecoveryTest, AChangeWithoutALossHasNothingToNotice) {
  Recovery joined = a_loss();
  joined.ns = joined.uid = "";
  joined.change.noticed_seconds = std::nullopt;
  const json spans = spans_of(joined);
  EXPECT_EQ(spans.size(), 4U);
  EXPECT_NE(spans[0]["name"], spans_of(a_loss())[0]["name"]);
  EXPECT_FALSE(attributes_of(spans[0]).contains("k8s.namespace.name"));
}

TEST(RecoveryTest, ALossNoticedLateEndsWithTheView) {
  Recovery late = a_loss();
  late.change.noticed_seconds = 7;
  const json spans = spans_of(late);
  EXPECT_EQ(spans[1]["endTimeUnixNano"], spans[2]["endTimeUnixNano"]);
}

TEST(RecoveryTest, BytesThatAreNoTextDoNoHarm) {
  Recovery odd = a_loss();
  odd.change.message = "\xff\xfe";
  EXPECT_EQ(spans_of(odd).size(), 5U);
}

TEST(RecoveryTest, ResourceNamesTheService) {
  const Recovery recovery = a_loss();
  const json request = json::parse(export_request({&recovery, 1}, "trainer"));
  EXPECT_EQ(attributes_of(request["resourceSpans"][0]["resource"]).at("service.name")["stringValue"],
            "trainer");
}

}  // namespace
}  // namespace paceline::traces
