#include "controller/cluster/kube/pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>

#include "controller/cluster/kube/object_store.h"
#include "controller/cluster/kube/times.h"
#include "tests/unit/controller/cluster/kube/pod_json.h"

namespace paceline::kube {
namespace {

using cluster::PodPhase;
using ::testing::HasSubstr;

SlimPod slim(const Json& json) {
  const auto pod = slim_pod(json);
  EXPECT_TRUE(pod.has_value()) << json;
  return pod.value_or(SlimPod());
}

TEST(PodTest, ARunningPod) {
  const SlimPod pod = slim(running_pod());
  EXPECT_EQ(pod.key, "machine-learning-team-a/resnet-imagenet-large-worker-3-0");
  EXPECT_EQ(pod.job_key, "machine-learning-team-a/resnet-imagenet-large");
  EXPECT_EQ(pod.uid, "7c9e6679-7425-40de-944b-e07fc1f91003");
  EXPECT_EQ(pod.job_uid, "0b6e4d7e-9a3c-4c53-8f4a-5d2f9b1c7e10");
  EXPECT_EQ(pod.resource_version, "123456789");
  EXPECT_EQ(pod.role, Role::kWorker);
  EXPECT_EQ(pod.index, 3);
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_TRUE(pod.ready);
  EXPECT_EQ(pod.node, "gke-training-pool-a100-80gb-1f3c9d2b-x7k2");
  EXPECT_EQ(pod.started, parse_time("2026-01-31T12:00:05Z"));
  EXPECT_EQ(pod.created, parse_time("2026-01-31T12:00:00Z"));
  EXPECT_EQ(pod.finished, std::nullopt);
  EXPECT_EQ(pod.deletion, std::nullopt);
  EXPECT_EQ(pod.reason, "");
}

TEST(PodTest, TheNodeThatItAvoidsIsKnown) {
  Json json = running_pod();
  EXPECT_EQ(to_cluster_pod(slim(json)).spec.avoid_host, "");
  json["metadata"]["annotations"]["paceline.dev/avoids"] = "node-2";
  EXPECT_EQ(to_cluster_pod(slim(json)).spec.avoid_host, "node-2");
}

// The kubelet of a lost node never tells of the end, and others tell of it late.
TEST(PodTest, APodThatIsEvictedSaysSoBeforeItHasEnded) {
  Json json = running_pod();
  json["status"]["conditions"].push_back({{"type", "DisruptionTarget"},
                                          {"status", "True"},
                                          {"reason", "DeletionByTaintManager"},
                                          {"message", "Taint manager: deleting due to NoExecute taint"}});
  EXPECT_EQ(to_cluster_pod(slim(json)).reason, "") << "it may be spared yet";
  json["metadata"]["deletionTimestamp"] = "2026-01-31T12:20:00Z";
  const cluster::Pod pod = to_cluster_pod(slim(json));
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_EQ(pod.reason, "DeletionByTaintManager");
  EXPECT_EQ(pod.message, "Taint manager: deleting due to NoExecute taint");
}

// The node lifecycle controller changes the status of one condition, and nothing else.
TEST(PodTest, APodWhoseNodeIsNotReadySaysSoByItsConditionReady) {
  const auto ready = [](Json& json) -> Json& { return json["status"]["conditions"][2]; };
  Json json = running_pod();
  ASSERT_EQ(ready(json)["type"], "Ready");
  EXPECT_FALSE(to_cluster_pod(slim(json)).node_not_ready);
  ready(json)["status"] = "False";
  EXPECT_TRUE(to_cluster_pod(slim(json)).node_not_ready);
  EXPECT_EQ(to_cluster_pod(slim(json)).phase, PodPhase::kRunning);
  json["metadata"]["deletionTimestamp"] = "2026-01-31T12:20:00Z";
  EXPECT_TRUE(to_cluster_pod(slim(json)).node_not_ready) << "nobody ends it there";
  Json gated = json;  // the kubelet's own words
  ready(gated)["reason"] = "ReadinessGatesNotReady";
  Json probed = json;
  ready(probed)["reason"] = "ContainersNotReady";
  probed["status"]["conditions"][3] = condition("ContainersReady", "False", "ContainersNotReady");
  Json silent = probed;
  ready(silent).erase("reason");
  Json ended = json;
  trainer_state(ended) = terminated(137, "Error");
  for (const Json& other : {gated, probed, silent, ended})
    EXPECT_FALSE(to_cluster_pod(slim(other)).node_not_ready) << other["status"];
}

// The API server notes when the grace is over; the kubelet, when the trainer ended.
TEST(PodTest, WhetherItEndedBeforeItWasDeleted) {
  Json json = running_pod();
  trainer_state(json) = terminated(1, "Error");
  trainer_state(json)["terminated"]["finishedAt"] = "2026-01-31T12:19:29Z";
  EXPECT_FALSE(to_cluster_pod(slim(json)).ended_first) << "nobody deletes it";
  json["metadata"]["deletionTimestamp"] = "2026-01-31T12:20:00Z";
  json["metadata"]["deletionGracePeriodSeconds"] = 30;
  EXPECT_TRUE(to_cluster_pod(slim(json)).ended_first);
  Json told = json;
  trainer_state(told)["terminated"]["exitCode"] = 143;
  EXPECT_FALSE(to_cluster_pod(slim(told)).ended_first) << "SIGTERM, and its node's clock is behind";
  Json later = json;
  trainer_state(later)["terminated"]["finishedAt"] = "2026-01-31T12:19:30Z";
  EXPECT_FALSE(to_cluster_pod(slim(later)).ended_first) << "in the same second";
  json["metadata"]["deletionGracePeriodSeconds"] = 40;
  EXPECT_FALSE(to_cluster_pod(slim(json)).ended_first);
  trainer_state(json) = running_pod()["status"]["containerStatuses"][0]["state"];
  EXPECT_FALSE(to_cluster_pod(slim(json)).ended_first) << "it runs";
}

TEST(PodTest, ToTheClustersOwnType) {
  Json json = running_pod();
  json["metadata"]["deletionTimestamp"] = "2026-01-31T12:20:00Z";
  json["metadata"]["labels"]["paceline.dev/role"] = "ps";
  json["metadata"]["labels"]["paceline.dev/attempt"] = "12";
  const cluster::Pod pod = to_cluster_pod(slim(json));
  EXPECT_EQ(pod.spec.ns, "machine-learning-team-a");
  EXPECT_EQ(pod.spec.name, "resnet-imagenet-large-worker-3-0");
  EXPECT_EQ(pod.spec.job, "resnet-imagenet-large");
  EXPECT_EQ(pod.spec.job_uid, "0b6e4d7e-9a3c-4c53-8f4a-5d2f9b1c7e10");
  EXPECT_EQ(pod.spec.role, Role::kServer);
  EXPECT_EQ(pod.spec.index, 3);
  EXPECT_EQ(pod.spec.attempt, 12);
  EXPECT_TRUE(pod.deleting);
  EXPECT_EQ(pod.host, "gke-training-pool-a100-80gb-1f3c9d2b-x7k2");
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_TRUE(pod.started.has_value());
}

TEST(PodTest, ForeignOrMalformedPodIsIgnored) {
  EXPECT_FALSE(slim_pod(Json()));
  EXPECT_FALSE(slim_pod(Json::array()));
  EXPECT_FALSE(slim_pod(Json::object()));
  Json unlabelled = running_pod();
  unlabelled["metadata"]["labels"].erase("paceline.dev/job-name");
  EXPECT_FALSE(slim_pod(unlabelled));
  Json anonymous = running_pod();
  anonymous["metadata"].erase("uid");
  EXPECT_FALSE(slim_pod(anonymous));
}

TEST(PodTest, SomebodyElsesPodHasNoOwnerOfOurs) {
  Json json = running_pod();
  json["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet";
  EXPECT_EQ(slim(json).job_uid, "");
  json["metadata"]["ownerReferences"][0]["kind"] = "TrainingJob";
  json["metadata"]["ownerReferences"][0]["controller"] = false;
  EXPECT_EQ(slim(json).job_uid, "");
}

struct EndCase {
  int exit_code;
  const char* reason;
  std::optional<int> code, signal;
};

TEST(PodTest, HowTheTrainerEnded) {
  const EndCase kCases[] = {{0, "Completed", 0, {}}, {1, "Error", 1, {}},        {7, "Error", 7, {}},
                            {128, "Error", 128, {}}, {137, "OOMKilled", {}, 9},  {137, "Error", {}, 9},
                            {143, "Error", {}, 15},  {192, "Error", {}, 64},     {193, "Error", 193, {}},
                            {255, "Error", 255, {}}, {128, "StartError", {}, {}}};
  for (const EndCase& each : kCases) {
    Json json = running_pod();
    json["status"]["phase"] = each.exit_code == 0 ? "Succeeded" : "Failed";
    trainer_state(json) = terminated(each.exit_code, each.reason, "last words");
    const SlimPod pod = slim(json);
    EXPECT_EQ(pod.exit_code, each.code) << each.exit_code;
    EXPECT_EQ(pod.signal, each.signal) << each.exit_code;
    EXPECT_EQ(pod.reason, each.reason);
    EXPECT_EQ(pod.message, pod.reason == "OOMKilled" ? "" : "last words") << "its log is no last word";
    EXPECT_EQ(pod.finished, parse_time("2026-01-31T12:10:00Z"));
  }
}

TEST(PodTest, ACommandThatCannotRunIsAStartError) {
  Json json = running_pod();
  json["status"]["phase"] = "Failed";
  trainer_state(json) = terminated(127, "ContainerCannotRun", "exec: \"/nowhere\": no such file");
  const SlimPod pod = slim(json);
  EXPECT_EQ(pod.reason, "StartError");
  EXPECT_THAT(pod.message, HasSubstr("/nowhere"));
  EXPECT_EQ(pod.exit_code, std::nullopt);
  EXPECT_EQ(pod.started, std::nullopt);
}

TEST(PodTest, TheTrainersEndIsThePodsEndWhateverSidecarsDo) {
  Json json = running_pod();
  trainer_state(json) = terminated(0, "Completed");
  EXPECT_EQ(slim(json).phase, PodPhase::kSucceeded);
  EXPECT_FALSE(slim(json).ready);
  trainer_state(json) = terminated(3, "Error");
  EXPECT_EQ(slim(json).phase, PodPhase::kFailed);
  EXPECT_EQ(slim(json).exit_code, 3);
  json["status"]["containerStatuses"][0]["state"] = terminated(1, "Error");
  trainer_state(json) = {{"running", {{"startedAt", "2026-01-31T12:00:05Z"}}}};
  EXPECT_EQ(slim(json).phase, PodPhase::kRunning) << "a sidecar's end is not the pod's";
  json["spec"]["restartPolicy"] = "Always";
  trainer_state(json) = terminated(3, "Error");
  EXPECT_EQ(slim(json).phase, PodPhase::kRunning) << "it will be restarted";
}

TEST(PodTest, APodWhoseSidecarsRunOnLingers) {
  Json json = running_pod();
  EXPECT_FALSE(to_cluster_pod(slim(json)).lingers) << "its trainer runs";
  trainer_state(json) = terminated(0, "Completed");
  EXPECT_TRUE(to_cluster_pod(slim(json)).lingers);
  EXPECT_FALSE(to_cluster_pod(slim(json)).all_ended());
  trainer_state(json) = terminated(3, "Error");
  EXPECT_TRUE(to_cluster_pod(slim(json)).lingers);
  json["status"]["containerStatuses"][0]["state"] = terminated(1, "Error");
  EXPECT_TRUE(to_cluster_pod(slim(json)).all_ended());
}

// Whether its container still runs, or the kubelet calls the whole pod failed for it.
TEST(PodTest, ASidecarThatFailsLaterDoesNotUndoTheTrainersGoodEnd) {
  Json json = running_pod();
  trainer_state(json) = terminated(0, "Completed");
  json["status"]["containerStatuses"][0]["state"] = terminated(1, "Error");
  for (const char* phase : {"Running", "Failed"}) {
    json["status"]["phase"] = phase;
    EXPECT_EQ(slim(json).phase, PodPhase::kSucceeded) << phase;
    EXPECT_EQ(slim(json).exit_code, 0) << phase;
    EXPECT_EQ(slim(json).reason, "Completed") << phase;
    EXPECT_EQ(slim(json).finished, parse_time("2026-01-31T12:10:00Z")) << phase;
  }
  trainer_state(json) = terminated(3, "Error");
  EXPECT_EQ(slim(json).phase, PodPhase::kFailed);
  trainer_state(json) = terminated(128, "StartError");
  EXPECT_EQ(slim(json).phase, PodPhase::kFailed) << "it never ran";
}

// A program that ends with code 0 because it is asked to has not finished.
TEST(PodTest, ExitCodeZeroOfADisruptedPodIsAFailure) {
  Json obeyed = running_pod();
  trainer_state(obeyed) = terminated(0, "Completed");
  Json evicted = obeyed;
  evicted["status"]["phase"] = "Failed";
  evicted["status"]["reason"] = "Evicted";
  Json disrupted = obeyed;
  disrupted["status"]["conditions"].push_back(condition("DisruptionTarget", "True", "TerminationByKubelet"));
  Json ended = disrupted;
  ended["status"]["phase"] = "Failed";
  for (const Json& json : {evicted, disrupted, ended}) {
    EXPECT_EQ(slim(json).phase, PodPhase::kFailed) << json["status"];
    EXPECT_EQ(slim(json).exit_code, 0);
    EXPECT_NE(slim(json).reason, "Completed");
  }
  Json spared = obeyed;
  spared["status"]["conditions"].push_back(condition("DisruptionTarget", "False", "PreemptionByScheduler"));
  EXPECT_EQ(slim(spared).phase, PodPhase::kSucceeded);
}

TEST(PodTest, WithoutATrainerTheFirstContainerDecides) {
  Json json = running_pod();
  json["spec"]["containers"][1]["name"] = "main";
  json["status"]["containerStatuses"][1]["name"] = "main";
  trainer_state(json) = terminated(3, "Error");
  EXPECT_EQ(slim(json).phase, PodPhase::kRunning);
  EXPECT_EQ(trainer_name(json["spec"]), "metrics");
  EXPECT_EQ(trainer_name(Json::object()), "");
}

TEST(PodTest, PodsReasonOutranksTheContainers) {
  Json json = running_pod();
  json["status"] = {{"phase", "Failed"},
                    {"reason", "Evicted"},
                    {"message", "The node was low on resource: memory."},
                    {"startTime", "2026-01-31T12:00:01Z"}};
  const SlimPod evicted = slim(json);
  EXPECT_EQ(evicted.reason, "Evicted");
  EXPECT_THAT(evicted.message, HasSubstr("low on resource"));
  EXPECT_EQ(evicted.phase, PodPhase::kFailed);
  EXPECT_TRUE(evicted.finished.has_value());
  for (const char* reason : {"NodeLost", "DeadlineExceeded", "UnexpectedAdmissionError", "Terminated"}) {
    json["status"]["reason"] = reason;
    json["status"]["containerStatuses"] = {{{"name", "trainer"}, {"state", terminated(137, "Error")}}};
    EXPECT_EQ(slim(json).reason, reason);
    EXPECT_EQ(slim(json).signal, 9);
  }
}

TEST(PodTest, ADisruptionIsTheReason) {
  for (const char* reason : {"PreemptionByScheduler", "DeletionByTaintManager", "EvictionByEvictionAPI",
                             "DeletionByPodGC", "TerminationByKubelet"}) {
    Json json = running_pod();
    json["status"]["conditions"].push_back(
        condition("DisruptionTarget", "True", reason, "a higher priority"));
    EXPECT_EQ(slim(json).disruption, reason);
    EXPECT_EQ(slim(json).reason, "") << "it runs still";
    json["status"]["phase"] = "Failed";
    trainer_state(json) = terminated(143, "Error");
    EXPECT_EQ(slim(json).reason, reason);
    EXPECT_EQ(slim(json).message, "a higher priority");
    EXPECT_EQ(slim(json).signal, 15);
  }
  Json json = running_pod();
  json["status"]["conditions"].push_back(condition("DisruptionTarget", "False", "PreemptionByScheduler"));
  EXPECT_EQ(slim(json).disruption, "");
}

TEST(PodTest, WhyItIsNotScheduled) {
  Json json = pending_pod();
  const char* words = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.";
  json["status"]["conditions"] = Json::array({condition("PodScheduled", "False", "Unschedulable", words)});
  EXPECT_EQ(slim(json).reason, "Unschedulable");
  EXPECT_EQ(slim(json).message, words);
  EXPECT_EQ(slim(json).phase, PodPhase::kPending);
}

TEST(PodTest, WhyAContainerWaits) {
  for (const char* reason :
       {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError",
        "CreateContainerError", "CrashLoopBackOff", "RunContainerError"}) {
    Json json = pending_pod();
    json["status"]["containerStatuses"] = {
        {{"name", "trainer"},
         {"state", {{"waiting", {{"reason", reason}, {"message", "the kubelet's words"}}}}}}};
    EXPECT_EQ(slim(json).reason, reason);
    EXPECT_EQ(slim(json).message, "container trainer: the kubelet's words");
  }
  for (const char* ordinary : {"ContainerCreating", "PodInitializing"}) {
    Json json = pending_pod();
    json["status"]["containerStatuses"] = {
        {{"name", "trainer"}, {"state", {{"waiting", {{"reason", ordinary}}}}}}};
    EXPECT_EQ(slim(json).reason, "");
  }
}

TEST(PodTest, InitContainersAreHeardToo) {
  Json json = pending_pod();
  json["status"]["initContainerStatuses"] = {
      {{"name", "fetch"}, {"restartCount", 4}, {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}}}};
  EXPECT_EQ(slim(json).reason, "CrashLoopBackOff");
  EXPECT_THAT(slim(json).message, HasSubstr("container fetch"));
  json["status"]["phase"] = "Failed";
  json["status"]["initContainerStatuses"] = {{{"name", "fetch"}, {"state", terminated(2, "Error", "404")}}};
  EXPECT_EQ(slim(json).reason, "Error");
  EXPECT_EQ(slim(json).message, "init container fetch exited with code 2: 404");
  EXPECT_EQ(slim(json).exit_code, std::nullopt) << "the trainer never ran";
  EXPECT_EQ(slim(json).failed_init, "fetch");
  json["status"]["initContainerStatuses"] = {{{"name", "fetch"}, {"state", terminated(2, "Error")}}};
  EXPECT_EQ(slim(json).message, "init container fetch exited with code 2") << "it said nothing";
}

TEST(PodTest, WordsAreBoundedAndHarmless) {
  Json json = running_pod();
  json["status"]["phase"] = "Failed";
  json["status"]["reason"] = std::string(1000, 'R');
  json["status"]["message"] = "\x1b[2J" + std::string(100'000, 'x');
  EXPECT_LE(slim(json).reason.size(), 67u);
  EXPECT_LE(slim(json).message.size(), kMaxPodMessageBytes + 3);
  EXPECT_EQ(slim(json).message.find('\x1b'), std::string::npos);
}

// Any value may stand anywhere: every part of a real pod is replaced by each of these.
TEST(PodTest, WrongTypesAreNeverFatal) {
  const Json kWrong[] = {nullptr,        7,        -1.5,        "text", true, Json::array(),
                         Json::object(), {1, "a"}, {{"a", {1}}}};
  Json whole = running_pod();
  whole["status"]["conditions"].push_back(condition("DisruptionTarget", "True", "X"));
  trainer_state(whole) = terminated(3, "Error");
  const Json flat = whole.flatten();
  int replaced = 0;
  std::set<std::string> places;
  for (const auto& [path, value] : flat.items()) {
    for (Json::json_pointer place(path); !place.empty(); place.pop_back()) places.insert(place.to_string());
  }
  for (const std::string& place : places) {
    for (const Json& wrong : kWrong) {
      Json changed = whole;
      changed[Json::json_pointer(place)] = wrong;
      slim_pod(changed);
      ++replaced;
    }
  }
  EXPECT_GT(replaced, 1000);
}

TEST(PodTest, APodTakesLessThan4KB) {
  constexpr int kPods = 100;
  std::vector<Json> objects;
  for (int i = 0; i < kPods; ++i) {
    objects.push_back(running_pod(i));
    if (i % 2 == 0) continue;
    objects.back()["status"]["phase"] = "Failed";
    trainer_state(objects.back()) = terminated(137, "Error", std::string(9999, 'x').c_str());
  }
  ObjectStore<SlimPod> store(slim_pod);
  ObjectSink::Keys changed;
  changed.reserve(kPods);
  const std::size_t before = ::mallinfo2().uordblks;
  for (const Json& object : objects) store.put(object, 1, changed);
  const std::size_t after = ::mallinfo2().uordblks;
  ASSERT_EQ(store.size(), static_cast<std::size_t>(kPods));
  EXPECT_LT((after - before) / kPods, 4096u) << "with the store's indices";  // 0 under AddressSanitizer
  std::size_t values = 0;
  for (const auto& pod : store.of_job("machine-learning-team-a/resnet-imagenet-large"))
    values += memory_of(*pod);
  EXPECT_LT(values / kPods, 2048u);
  EXPECT_GT(values / kPods, sizeof(SlimPod));
  RecordProperty("bytes_per_pod", static_cast<int>((after - before) / kPods));
  RecordProperty("bytes_per_value", static_cast<int>(values / kPods));
}

}  // namespace
}  // namespace paceline::kube
