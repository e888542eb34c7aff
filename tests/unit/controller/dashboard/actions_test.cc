#include "controller/dashboard/actions.h"

#include <gtest/gtest.h>

#include <set>

namespace paceline::dashboard {
namespace {

using kube::Json;

Json job(const std::string& phase, bool suspended) {
  return Json::parse(R"({"metadata": {"namespace": "default", "name": "digits", "uid": "digits"},
    "spec": {"runPolicy": {"suspend": )" +
                     std::string(suspended ? "true" : "false") + R"(},
             "replicaSpecs": {"worker": {"replicas": 3, "minReplicas": 2, "maxReplicas": 4}},
             "training": {"model": {"type": "mlp", "hidden": [8], "classes": 10},
                          "data": {"format": "csv", "train": {"inputs": "digits.csv"}},
                          "optimizer": {"type": "SGD", "learningRate": 0.1}, "globalBatchSize": 64, "epochs": 1}},
    "status": {"phase": ")" +
                     phase + R"("}})");
}

constexpr Action kAll[] = {Action::kSuspend,    Action::kResume,  Action::kScale,
                           Action::kCheckpoint, Action::kReplace, Action::kDelete};

std::set<std::string_view> allowed(const Json& object) {
  std::set<std::string_view> names;
  for (const Action action : kAll) {
    if (why_not(action, object).empty()) names.insert(name(action));
  }
  return names;
}

using Names = std::set<std::string_view>;

TEST(ActionsTest, StatesAllowSomeOfThem) {
  EXPECT_EQ(allowed(job("Running", false)), (Names{"suspend", "scale", "delete"}));
  EXPECT_EQ(allowed(job("Suspended", true)), (Names{"resume", "scale", "delete"}));
  EXPECT_EQ(allowed(job("Succeeded", false)), (Names{"delete"}));
  Json deleting = job("Running", false);
  deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_EQ(allowed(deleting), (Names{}));
  Json alone = job("Running", false);
  alone["spec"]["replicaSpecs"] = {{"chief", Json::object()}};
  EXPECT_EQ(allowed(alone), (Names{"suspend", "delete"}));
}

TEST(ActionsTest, JsonTellsOfAll) {
  const Json json = actions_json(job("Running", false), why_not);
  EXPECT_EQ(json.size(), 6U);
  EXPECT_EQ(json["suspend"], (Json{{"allowed", true}}));
  EXPECT_EQ(json["resume"]["allowed"], false);
  EXPECT_FALSE(json["resume"]["why"].get<std::string>().empty());
}

TEST(ActionsTest, NamesLeadBack) {
  for (const Action action : kAll) EXPECT_EQ(action_named(name(action)), action);
  EXPECT_EQ(action_named("fly"), std::nullopt);
}

TEST(ActionsTest, PatchesChangeOneThing) {
  const Json object = job("Running", false);
  EXPECT_EQ(patch_of(Action::kSuspend, object, {}).value(),
            Json::parse(R"({"spec":{"runPolicy":{"suspend":true}}})"));
  EXPECT_EQ(patch_of(Action::kResume, object, {}).value(),
            Json::parse(R"({"spec":{"runPolicy":{"suspend":false}}})"));
  EXPECT_EQ(patch_of(Action::kScale, object, {{"replicas", 4}}).value(),
            Json::parse(R"({"spec":{"replicaSpecs":{"worker":{"replicas":4}}}})"));
}

TEST(ActionsTest, OtherNumbersOfWorkersAreRefused) {
  const Json object = job("Running", false);
  for (const Json& body :
       {Json{{"replicas", 5}}, Json{{"replicas", 1}}, Json{{"replicas", -1}}, Json{{"replicas", 2.5}},
        Json{{"replicas", "3"}}, Json::object(), Json::array(), Json()}) {
    EXPECT_EQ(patch_of(Action::kScale, object, body).status().code(), absl::StatusCode::kInvalidArgument)
        << body;
  }
  Json broken = object;
  broken["spec"]["training"].erase("model");
  EXPECT_EQ(patch_of(Action::kScale, broken, {{"replicas", 3}}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace paceline::dashboard
