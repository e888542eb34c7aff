#include "controller/cluster/kube/host_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/text.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;
using cluster::PodPhase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A job's names, and an API server that keeps what is written.
class HostNamesTest : public ::testing::Test {
 protected:
  // A pod that runs, again as it is here at every call; its address is made of its place.
  SlimPod& pod(int index, int attempt = 0, Role role = Role::kWorker) {
    const std::string name = str_cat("j-", role_name(role), "-", index, "-", attempt);
    SlimPod& made = pods_[name];
    made.key = str_cat("n/", name);
    made.uid = str_cat("uid-of-", name);
    made.job_uid = "job-uid";
    made.role = role;
    made.index = index;
    made.attempt = attempt;
    made.phase = PodPhase::kRunning;
    made.node = "node-1";
    made.pod_ip = str_cat("10.", static_cast<int>(role), ".", index, ".", attempt);
    return made;
  }
  // One of five things that happen to a pod.
  void change(int index, int attempt, int what) {
    SlimPod& one = pod(index, attempt);
    if (what == 0) one.pod_ip.clear();
    if (what == 1) one.deletion = WallTime(1h);  // it is found still
    if (what == 2) one.phase = PodPhase::kFailed;
    if (what == 3) pods_.erase(str_cat("j-worker-", index, "-", attempt));
    if (what == 4) one.deletion.reset();
  }
  SliceWrites ask() {
    HostNames names{.owner = owner_, .pods_wanted = wanted_, .pods = {}, .present = {}};
    for (const auto& [name, pod] : pods_) names.pods.push_back(std::make_shared<const SlimPod>(pod));
    for (const auto& [name, object] : slices_) {
      const std::optional<SlimSlice> slice = slim_slice(object);
      EXPECT_TRUE(slice.has_value()) << object;
      if (slice) names.present.push_back(std::make_shared<const SlimSlice>(*slice));
    }
    return slice_writes(names, since_, now_);
  }
  // Writes what is due; how many slices.
  std::size_t write() {
    const SliceWrites writes = ask();
    for (const SliceWrite& each : writes.now) {
      const auto there = slices_.find(each.name);
      EXPECT_EQ(there == slices_.end(), each.resource_version.empty()) << each.name;
      if (there != slices_.end()) {
        EXPECT_EQ(text_at(there->second, {"metadata", "resourceVersion"}), each.resource_version);
      }
      slices_[each.name] = each.object;
      slices_[each.name]["metadata"]["resourceVersion"] = std::to_string(++version_);
      slices_[each.name]["metadata"]["managedFields"] = {{{"manager", "paceline-controller"}}};
    }
    if (!writes.now.empty()) since_.reset();
    return writes.now.size();
  }
  // "host address pod" of every slice, by their names.
  std::vector<std::string> found(std::string_view in = "") {
    std::vector<std::string> lines;
    for (const auto& [name, object] : slices_) {
      if (!in.empty() && name != in) continue;
      for (const Json& each : list_at(object, {"endpoints"})) {
        EXPECT_EQ(list_at(each, {"addresses"}).size(), 1u);
        lines.push_back(str_cat(text_at(each, {"hostname"}), " ", each["addresses"][0].get<std::string>(),
                                " ", text_at(each, {"targetRef", "name"})));
      }
    }
    return lines;
  }

  std::map<std::string, SlimPod> pods_;
  std::map<std::string, Json> slices_;
  Owner owner_{"n", "j", "job-uid"};
  std::size_t wanted_ = 2;
  std::optional<TimePoint> since_;
  TimePoint now_{1h};
  int version_ = 0;
};

TEST_F(HostNamesTest, ASliceAsConsumersReadIt) {
  pod(0);
  pod(0, 0, Role::kChief).node.clear();
  ASSERT_EQ(write(), 1u);
  const Json& slice = slices_.at("j-0-ipv4");
  EXPECT_EQ(text_at(slice, {"apiVersion"}), "discovery.k8s.io/v1");
  EXPECT_EQ(text_at(slice, {"kind"}), "EndpointSlice");
  EXPECT_EQ(text_at(slice, {"addressType"}), "IPv4");
  EXPECT_EQ(at(slice, {"ports"}), Json::array());
  EXPECT_EQ(owner_uid(slice), "job-uid");
  EXPECT_EQ(at(slice, {"metadata", "labels"}),
            (Json{{kJobNameLabel, "j"},
                  {"kubernetes.io/service-name", "j"},
                  {"service.kubernetes.io/headless", ""},
                  {"endpointslice.kubernetes.io/managed-by", kSliceManager}}));
  ASSERT_EQ(slice["endpoints"].size(), 2u);
  EXPECT_EQ(slice["endpoints"][1], Json::parse(R"({"addresses": ["10.1.0.0"], "hostname": "j-worker-0",
    "conditions": {"ready": true}, "nodeName": "node-1",
    "targetRef": {"kind": "Pod", "namespace": "n", "name": "j-worker-0-0", "uid": "uid-of-j-worker-0-0"}})"))
      << "found before it is ready";
  EXPECT_EQ(text_at(slice["endpoints"][0], {"hostname"}), "j-chief-0");
  EXPECT_FALSE(slice["endpoints"][0].contains("nodeName"));
  EXPECT_EQ(str_cat(kManagedByLabel, "=", kSliceManager, ",", kJobNameLabel), kOurSlices);
}

TEST_F(HostNamesTest, RightSliceIsNotWrittenAgain) {
  EXPECT_EQ(write(), 0u) << "nobody is there";
  pod(0);
  pod(1);
  EXPECT_EQ(write(), 1u);
  EXPECT_EQ(write(), 0u);
  EXPECT_EQ(since_, std::nullopt);
  SlimPod& other = pod(1);
  other.ready = true;
  other.resource_version = "17";
  EXPECT_EQ(write(), 0u) << "that a pod is ready changes nothing";
}

// Each of these is somebody else's doing, and mended.
TEST_F(HostNamesTest, ForeignChangeIsMended) {
  pod(0);
  pod(1);
  ASSERT_EQ(write(), 1u);
  const Json right = slices_.at("j-0-ipv4");
  const std::pair<const char*, std::function<void(Json&)>> kChanges[] = {
      {"address", [](Json& slice) { slice["endpoints"][0]["addresses"][0] = "10.9.9.9"; }},
      {"another address", [](Json& slice) { slice["endpoints"][0]["addresses"].push_back("10.9.9.9"); }},
      {"host", [](Json& slice) { slice["endpoints"][0]["hostname"] = "x"; }},
      {"node", [](Json& slice) { slice["endpoints"][0].erase("nodeName"); }},
      {"pod", [](Json& slice) { slice["endpoints"][0]["targetRef"]["uid"] = "x"; }},
      {"hidden", [](Json& slice) { slice["endpoints"][0]["conditions"]["ready"] = false; }},
      {"one less", [](Json& slice) { slice["endpoints"].erase(1); }},
      {"none", [](Json& slice) { slice["endpoints"] = nullptr; }},
      {"order", [](Json& slice) { std::swap(slice["endpoints"][0], slice["endpoints"][1]); }},
      {"owner", [](Json& slice) { slice["metadata"]["ownerReferences"][0]["uid"] = "an earlier job's"; }},
      {"service", [](Json& slice) { slice["metadata"]["labels"]["kubernetes.io/service-name"] = "x"; }},
      {"proxied", [](Json& slice) { slice["metadata"]["labels"].erase("service.kubernetes.io/headless"); }},
  };
  for (const auto& [what, change] : kChanges) {
    change(slices_.at("j-0-ipv4"));
    EXPECT_EQ(write(), 1u) << what;
    Json& written = slices_.at("j-0-ipv4");
    written["metadata"]["resourceVersion"] = right["metadata"]["resourceVersion"];
    EXPECT_EQ(written, right) << what;
  }
  slices_.clear();
  EXPECT_EQ(write(), 1u) << "deleted";
}

TEST_F(HostNamesTest, AHostNameIsTheNewestAttempts) {
  pod(0);
  pod(1);
  ASSERT_EQ(write(), 1u);
  // The node of the first one is lost, and nobody can end it.
  pod(0).node_not_ready = true;
  EXPECT_EQ(write(), 0u) << "until there is another one";
  pod(0, 2).pod_ip.clear();
  EXPECT_EQ(write(), 0u);
  now_ += kGathering;
  ASSERT_EQ(write(), 1u);
  EXPECT_THAT(found(), ElementsAre("j-worker-1 10.1.1.0 j-worker-1-0")) << "also before it has an address";
  pod(0, 2);
  pod(0, 1);  // of an attempt between them
  ASSERT_EQ(write(), 1u);
  EXPECT_THAT(found(), ElementsAre("j-worker-0 10.1.0.2 j-worker-0-2", "j-worker-1 10.1.1.0 j-worker-1-0"));
}

TEST_F(HostNamesTest, EndedPodIsNotFound) {
  wanted_ = 6;
  for (int index = 0; index < 6; ++index) pod(index);
  ASSERT_EQ(write(), 1u);
  pod(0).phase = PodPhase::kSucceeded;
  pod(1).phase = PodPhase::kFailed;
  SlimPod& lost = pod(2);
  lost.deletion = WallTime(1h);  // and nobody knows when it ends
  lost.node_not_ready = true;
  SlimPod& beside = pod(3);
  beside.phase = PodPhase::kSucceeded;
  beside.lingers = true;  // its sidecars run on
  pods_.erase("j-worker-5-0");
  EXPECT_EQ(write(), 0u);
  now_ += kGathering;
  EXPECT_EQ(write(), 1u);
  EXPECT_THAT(found(), ElementsAre("j-worker-3 10.1.3.0 j-worker-3-0", "j-worker-4 10.1.4.0 j-worker-4-0"));
  pods_.clear();
  EXPECT_EQ(write(), 0u);
  now_ += kGathering;
  EXPECT_EQ(write(), 1u);
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_EQ(slices_.at("j-0-ipv4")["endpoints"], Json::array()) << "emptied";
  EXPECT_EQ(write(), 0u);
}

// Programs save what they have while they are asked to end, and may need each other for it.
TEST_F(HostNamesTest, TerminatingPodIsFoundUntilItEnds) {
  pod(0);
  pod(1);
  ASSERT_EQ(write(), 1u);
  for (const int index : {0, 1}) pod(index).deletion = WallTime(1h);
  now_ += 2 * kGathering;
  EXPECT_EQ(ask().wait, std::nullopt);
  EXPECT_EQ(write(), 0u);
  SlimPod& ended = pod(0);
  ended.deletion = WallTime(1h);
  ended.phase = PodPhase::kFailed;
  pods_.erase("j-worker-1-0");
  pod(1, 1).pod_ip.clear();  // whose name it is from now on
  EXPECT_EQ(write(), 0u);
  now_ += kGathering;
  EXPECT_EQ(write(), 1u);
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(HostNamesTest, PodsOfAnotherJobOfThisNameAreNotFound) {
  pod(0).job_uid = "an earlier job's";
  pod(0, 3).job_uid = "nobody's";
  pod(1);
  now_ += kGathering;
  EXPECT_EQ(write(), 0u);
  now_ += kGathering;
  EXPECT_EQ(write(), 1u);
  EXPECT_THAT(found(), ElementsAre("j-worker-1 10.1.1.0 j-worker-1-0"));
  // What an earlier one left is the present one's now, and says nothing of before.
  slices_.at("j-0-ipv4")["metadata"]["ownerReferences"][0]["uid"] = "an earlier job's";
  pods_.clear();
  EXPECT_EQ(write(), 0u);
  now_ += kGathering;
  EXPECT_EQ(write(), 1u);
  EXPECT_EQ(owner_uid(slices_.at("j-0-ipv4")), "job-uid");
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(HostNamesTest, PodsWithTwoAddressesHaveASliceOfEachFamily) {
  pod(0).other_ip = "fd00::1";
  pod(1).pod_ip = "fd00::2";
  EXPECT_EQ(write(), 2u);
  EXPECT_THAT(found("j-0-ipv4"), ElementsAre("j-worker-0 10.1.0.0 j-worker-0-0"));
  EXPECT_THAT(found("j-0-ipv6"),
              ElementsAre("j-worker-0 fd00::1 j-worker-0-0", "j-worker-1 fd00::2 j-worker-1-0"));
  EXPECT_EQ(text_at(slices_.at("j-0-ipv6"), {"addressType"}), "IPv6");
  EXPECT_EQ(write(), 0u);
  pod(0).other_ip.clear();
  pod(1).pod_ip = "10.0.0.1";
  EXPECT_EQ(write(), 2u);
  EXPECT_THAT(found("j-0-ipv6"), IsEmpty());
  EXPECT_EQ(text_at(slices_.at("j-0-ipv6"), {"addressType"}), "IPv6") << "it can't be changed";
}

TEST_F(HostNamesTest, ManyMembersHaveSeveralSlicesOfWhichOneChanges) {
  constexpr int kMembers = 1024;
  wanted_ = 2 * kMembers;
  for (int index = 0; index < kMembers; ++index) {
    pod(index);
    pod(index, 0, Role::kServer);
  }
  EXPECT_EQ(write(), 5u);
  EXPECT_EQ(found().size(), wanted_);
  for (const auto& [name, object] : slices_) {
    EXPECT_LE(object["endpoints"].size(), static_cast<std::size_t>(kMostEndpoints)) << name;
    EXPECT_EQ(object["endpoints"].size(), name == "j-4-ipv4" ? 48u : 500u) << name;
  }
  EXPECT_EQ(write(), 0u);
  pod(260).pod_ip = "10.200.0.1";
  ASSERT_EQ(ask().now.size(), 1u);
  EXPECT_EQ(ask().now[0].name, "j-1-ipv4");
  // All four roles with as many members as may have the same slice.
  for (const Role role : {Role::kChief, Role::kEvaluator}) {
    for (int index = 0; index < kSliceIndices; ++index) pod(index, 0, role);
    wanted_ += kSliceIndices;
  }
  ASSERT_GT(write(), 0u);
  EXPECT_EQ(found("j-0-ipv4").size(), static_cast<std::size_t>(kMostEndpoints));
}

TEST_F(HostNamesTest, OnlySlicesOfOursAreReadAndOnlyThoseOfTheJobsNamesAreEmptied) {
  pod(0);
  pod(1);
  ASSERT_EQ(write(), 1u);
  Json other = slices_.at("j-0-ipv4");
  other["metadata"]["labels"][kManagedByLabel] = "endpointslice-controller.k8s.io";
  EXPECT_EQ(slim_slice(other), std::nullopt);
  other = slices_.at("j-0-ipv4");
  other["metadata"]["labels"].erase(kJobNameLabel);
  EXPECT_EQ(slim_slice(other), std::nullopt);
  EXPECT_EQ(slim_slice(Json::object()), std::nullopt);
  for (const char* name : {"j", "j-", "j-0", "j-x-ipv4", "j-00-ipv4", "j--1-ipv4", "jj-0-ipv4", "mine"}) {
    slices_[name] = slices_.at("j-0-ipv4");
    slices_[name]["metadata"]["name"] = name;
    slices_[name]["metadata"]["resourceVersion"] = "9";
  }
  pods_.clear();
  EXPECT_THAT(ask().now, IsEmpty());
  now_ += kGathering;
  const SliceWrites writes = ask();
  ASSERT_EQ(writes.now.size(), 1u);
  EXPECT_EQ(writes.now[0].name, "j-0-ipv4");
}

// ---- when

TEST_F(HostNamesTest, PodsThatComeUpTogetherCostOneWrite) {
  wanted_ = 8;
  std::size_t writes = 0;
  for (int index = 0; index < 8; ++index) {
    pod(index).pod_ip.clear();
    EXPECT_EQ(ask().wait, std::nullopt) << "nothing is to be written";
  }
  for (int index = 0; index < 8; ++index) {
    pod(index);
    writes += write();
    EXPECT_EQ(ask().wait, index < 7 ? std::optional<Duration>(kGathering - index * 100ms) : std::nullopt);
    now_ += 100ms;
  }
  EXPECT_EQ(writes, 1u);
  EXPECT_EQ(found().size(), 8u);
}

TEST_F(HostNamesTest, PodsThatAreStillToBeCreatedAreWaitedFor) {
  wanted_ = 8;
  for (int index = 0; index < 4; ++index) pod(index);
  EXPECT_EQ(write(), 0u);
  EXPECT_EQ(ask().wait, kGathering);
  for (int index = 4; index < 8; ++index) pod(index);
  EXPECT_EQ(write(), 1u);
}

TEST_F(HostNamesTest, AddressIsPublishedAfterASecondAtMost) {
  wanted_ = 3;
  pod(0).pod_ip.clear();
  pod(1);
  EXPECT_EQ(write(), 0u);
  now_ += kGathering / 2;
  pod(2);
  EXPECT_EQ(write(), 0u);
  EXPECT_EQ(ask().wait, kGathering / 2) << "counted from the first";
  now_ += kGathering / 2;
  EXPECT_EQ(write(), 1u);
  EXPECT_EQ(found().size(), 2u);
  now_ += 1h;
  EXPECT_EQ(ask().wait, std::nullopt) << "nobody waits";
  pod(0);
  EXPECT_EQ(write(), 1u) << "the last one at once";
}

// What nobody waits for any more is gathered all the same: of a job that is over, and of one made smaller.
TEST_F(HostNamesTest, PodsThatEndOneAfterAnotherCostAWriteASecond) {
  for (const std::size_t stay : {0u, 2u}) {
    pods_.clear();
    slices_.clear();
    wanted_ = 8;
    for (int index = 0; index < 8; ++index) pod(index);
    ASSERT_EQ(write(), 1u);
    wanted_ = stay;
    std::size_t writes = 0;
    for (int index = 7; index >= static_cast<int>(stay); --index) {
      pods_.erase(str_cat("j-worker-", index, "-0"));
      writes += write();
      now_ += kGathering / 10;
    }
    EXPECT_EQ(writes, 1u) << "the last one is not waited for";
    EXPECT_EQ(found().size(), stay);
    EXPECT_EQ(ask().wait, std::nullopt);
  }
}

// Whatever comes and goes: a second later it is right, a name is one pod's, and there are few writes.
TEST_F(HostNamesTest, ASecondAfterTheLastChangeAllIsRight) {
  constexpr int kSteps = 400, kMembers = 8, kAttempts = 3;
  wanted_ = kMembers;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(str_cat("seed ", seed));
    Rng rng(seed, 1);
    std::size_t writes = 0;
    for (int step = 0; step < kSteps; ++step) {
      const int index = static_cast<int>(rng.below(kMembers)),
                attempt = static_cast<int>(rng.below(kAttempts));
      change(index, attempt, static_cast<int>(rng.below(5)));
      writes += write();
      now_ += kGathering / 20;
    }
    EXPECT_LE(writes, 2u * kSteps / 20);
    write();
    now_ += kGathering;
    write();
    std::vector<std::string> expected;
    for (int index = 0; index < kMembers; ++index) {
      const SlimPod* newest = nullptr;
      for (int attempt = 0; attempt < kAttempts; ++attempt) {
        if (const auto one = pods_.find(str_cat("j-worker-", index, "-", attempt)); one != pods_.end())
          newest = &one->second;
      }
      if (newest == nullptr || newest->pod_ip.empty() || newest->phase == PodPhase::kFailed) continue;
      expected.push_back(str_cat("j-worker-", index, " ", newest->pod_ip, " ", newest->key.substr(2)));
    }
    EXPECT_EQ(found(), expected);
  }
}

}  // namespace
}  // namespace paceline::kube
