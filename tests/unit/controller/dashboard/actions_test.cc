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
             "replicaSpecs": {"worker": {"replicas": 3, "minReplicas": 2, "maxReplicas": 4,
                                         "restartPolicy": "OnFailure"}},
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
  EXPECT_EQ(allowed(job("Running", false)), (Names{"suspend", "scale", "checkpoint", "replace", "delete"}));
  EXPECT_EQ(allowed(job("Starting", false)), (Names{"suspend", "scale", "delete"}));
  EXPECT_EQ(allowed(job("Suspended", true)), (Names{"resume", "scale", "delete"}));
  EXPECT_EQ(allowed(job("Succeeded", false)), (Names{"delete"}));
  Json deleting = job("Running", false);
  deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_EQ(allowed(deleting), (Names{}));
  Json alone = job("Running", false);
  alone["spec"]["replicaSpecs"] = {{"chief", Json::object()}};
  EXPECT_EQ(allowed(alone), (Names{"suspend", "checkpoint", "delete"})) << "nobody trains beside it";
  Json never = job("Running", false);
  never["spec"]["replicaSpecs"]["worker"].erase("restartPolicy");
  EXPECT_EQ(allowed(never), (Names{"suspend", "scale", "checkpoint", "delete"}));
  Json together = job("Running", false);
  together["spec"]["replicaSpecs"]["worker"]["restartScope"] = "Job";
  EXPECT_EQ(allowed(together), (Names{"suspend", "scale", "checkpoint", "delete"}));
}

TEST(ActionsTest, RequestsWaitForTheOneBefore) {
  Json object = job("Running", false);
  object["status"]["requests"]["checkpoint"] = {{"text", "x"}, {"outcome", "UnderWay"}};
  object["status"]["stragglerReplacements"] =
      Json::array({{{"pod", "digits-worker-1-0"}, {"outcome", "UnderWay"}}});
  EXPECT_EQ(allowed(object), (Names{"suspend", "scale", "delete"}));
  object["status"]["requests"]["checkpoint"]["outcome"] = "Done";
  object["status"]["stragglerReplacements"][0]["outcome"] = "Replaced";
  EXPECT_EQ(allowed(object), (Names{"suspend", "scale", "checkpoint", "replace", "delete"}));
}

TEST(ActionsTest, ProgramsOfTheirOwnAndServersAllowFewerRequests) {
  Json servers = job("Running", false);
  servers["spec"]["strategy"]["type"] = "ParameterServer";
  EXPECT_EQ(allowed(servers), (Names{"suspend", "checkpoint", "delete"}));
  Json own = job("Running", false);
  own["spec"].erase("training");
  own["spec"]["replicaSpecs"]["worker"]["template"] =
      Json::parse(R"({"spec": {"containers": [{"name": "trainer", "image": "i", "command": ["x"]}]}})");
  EXPECT_EQ(allowed(own), (Names{"suspend", "scale", "delete"}));
}

TEST(ActionsTest, JobsOfAnotherControllerTakeNoRequests) {
  Json object = job("Running", false);
  object["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  EXPECT_EQ(allowed(object), (Names{"suspend", "scale", "delete"}));
}

TEST(ActionsTest, JsonTellsOfAll) {
  const Json json = actions_json(job("Running", false), {}, why_not);
  EXPECT_EQ(json.size(), 6U);
  EXPECT_EQ(json["suspend"], (Json{{"allowed", true}}));
  EXPECT_EQ(json["resume"]["allowed"], false);
  EXPECT_FALSE(json["resume"]["why"].get<std::string>().empty());
  EXPECT_EQ(json["scale"], (Json{{"allowed", true}, {"least", 2}, {"most", 4}}));
}

TEST(ActionsTest, JobsOfAFixedSizeAreNotScaled) {
  Json object = job("Running", false);
  for (const char* key : {"minReplicas", "maxReplicas"}) object["spec"]["replicaSpecs"]["worker"].erase(key);
  EXPECT_EQ(allowed(object), (Names{"suspend", "checkpoint", "replace", "delete"}));
  object["spec"]["replicaSpecs"]["worker"]["minReplicas"] = "two";
  EXPECT_EQ(allowed(object), (Names{"suspend", "checkpoint", "delete"})) << "it can't be run";
}

TEST(ActionsTest, JsonTellsWhatTheViewerMayNot) {
  const Json none = actions_json(job("Running", false), {.update = false, .remove = false}, why_not);
  for (const auto& [action, item] : none.items()) EXPECT_EQ(item["allowed"], false) << action;
  const Json some = actions_json(job("Running", false), {.update = true, .remove = false}, why_not);
  EXPECT_EQ(some["suspend"]["allowed"], true);
  EXPECT_EQ(some["delete"]["allowed"], false);
}

constexpr WallTime kMoment{std::chrono::seconds(1'800'000'000)};

TEST(ActionsTest, PatchesChangeOneThing) {
  Json object = job("Running", false);
  object["spec"]["replicaSpecs"]["worker"]["restartPolicy"] = "OnFailure";
  const auto patch = [&](Action action, const Json& body) {
    return deed_of(action, object, body, kMoment)->patch;
  };
  EXPECT_EQ(patch(Action::kSuspend, {}), Json::parse(R"({"spec":{"runPolicy":{"suspend":true}}})"));
  EXPECT_EQ(patch(Action::kResume, {}), Json::parse(R"({"spec":{"runPolicy":{"suspend":false}}})"));
  EXPECT_EQ(patch(Action::kScale, {{"replicas", 4}}),
            Json::parse(R"({"spec":{"replicaSpecs":{"worker":{"replicas":4}}}})"));
  EXPECT_EQ(patch(Action::kCheckpoint, {}),
            Json::parse(
                R"({"metadata":{"annotations":{"paceline.dev/checkpoint":"2027-01-15T08:00:00.000000Z"}}})"));
  EXPECT_EQ(
      patch(Action::kReplace, {{"member", "worker-2"}}),
      Json::parse(
          R"({"metadata":{"annotations":{"paceline.dev/replace":"worker-2@2027-01-15T08:00:00.000000Z"}}})"));
}

TEST(ActionsTest, EventsHaveTheFigures) {
  const Json object = job("Running", false);
  EXPECT_EQ(deed_of(Action::kScale, object, {{"replicas", 4}}, kMoment)->asked,
            "scale it from 3 to 4 workers");
  EXPECT_EQ(deed_of(Action::kSuspend, object, {}, kMoment)->asked, "suspend it");
  EXPECT_EQ(deed_of(Action::kDelete, object, {}, kMoment)->asked, "delete it");
}

TEST(ActionsTest, OtherNumbersOfWorkersAreRefused) {
  const Json object = job("Running", false);
  const auto code = [](const Json& of, const Json& body) {
    return deed_of(Action::kScale, of, body, kMoment).status().code();
  };
  for (const Json& body :
       {Json{{"replicas", 5}}, Json{{"replicas", 1}}, Json{{"replicas", -1}}, Json{{"replicas", 2.5}},
        Json{{"replicas", "3"}}, Json::object(), Json::array(), Json()})
    EXPECT_EQ(code(object, body), absl::StatusCode::kInvalidArgument) << body;
  EXPECT_EQ(code(object, {{"replicas", 3}}), absl::StatusCode::kFailedPrecondition) << "it has so many";
  Json broken = object;
  broken["spec"]["training"].erase("model");
  EXPECT_EQ(code(broken, {{"replicas", 4}}), absl::StatusCode::kFailedPrecondition);
}

TEST(ActionsTest, OtherMembersAreNotReplaced) {
  Json object = job("Running", false);
  object["spec"]["replicaSpecs"]["worker"]["restartPolicy"] = "OnFailure";
  const auto code = [&](const Json& body) {
    return deed_of(Action::kReplace, object, body, kMoment).status().code();
  };
  for (const Json& body : {Json{{"member", "worker"}}, Json{{"member", 2}}, Json::object(), Json()})
    EXPECT_EQ(code(body), absl::StatusCode::kInvalidArgument) << body;
  EXPECT_EQ(code({{"member", "worker-2"}}), absl::StatusCode::kOk);
  EXPECT_EQ(code({{"member", "worker-3"}}), absl::StatusCode::kFailedPrecondition) << "there is none";
  EXPECT_EQ(code({{"member", "chief-0"}}), absl::StatusCode::kFailedPrecondition);
  object["spec"]["replicaSpecs"]["worker"]["restartPolicy"] = "Never";
  EXPECT_EQ(code({{"member", "worker-2"}}), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace paceline::dashboard
