#include "controller/cluster/kube/name_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/text.h"
#include "controller/cluster/kube/resources.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSlice[] = "j-0-ipv4";

class NamePublisherTest : public ::testing::Test {
 protected:
  testing::FakeClock clock_;
  testing::FakeApiServer server_;
  ApiClient api_{server_, clock_, 1};
  std::vector<std::shared_ptr<const SlimPod>> pods_;
  std::unique_ptr<NamePublisher> publisher_;

  // A controller that has just begun; its informer has listed what is there.
  void begin() {
    publisher_ = make();
    ASSERT_TRUE(comes([&] { return publish() != kListLook || !publisher_->publish(owner(), 9, {}).ok(); }));
  }
  static bool at_once(Duration /*time*/, const std::stop_token& stop) {
    std::this_thread::yield();
    return !stop.stop_requested();
  }
  static bool never(Duration /*time*/, std::stop_token stop) { return real_pause(1h, std::move(stop)); }
  // `again`: how it waits where a list or a watch fails.
  std::unique_ptr<NamePublisher> make(Pause again = at_once) {
    auto made = std::make_unique<NamePublisher>(
        api_, clock_, Logger::none(), [](const std::string&) {},
        NamePublisherOptions{.pause = std::move(again)});
    made->start();
    return made;
  }
  static Owner owner(const std::string& uid = "job-uid") { return {"n", "j", uid}; }
  void pod(int index, const std::string& address, const std::string& job_uid = "job-uid") {
    SlimPod made;
    made.key = str_cat("n/j-worker-", index, "-0");
    made.uid = str_cat("uid-", index);
    made.job_uid = job_uid;
    made.index = index;
    made.phase = cluster::PodPhase::kRunning;
    made.pod_ip = address;
    pods_.push_back(std::make_shared<const SlimPod>(made));
  }
  absl::StatusOr<std::optional<Duration>> ask() { return publisher_->publish(owner(), 2, pods_); }
  // How long to wait; a negative time where it failed.
  std::optional<Duration> publish() {
    const auto again = ask();
    return again.ok() ? *again : std::optional<Duration>(-1s);
  }
  std::vector<std::string> addresses() {
    std::vector<std::string> found;
    const auto slice = server_.find("endpointslices", "n", kSlice);
    if (!slice) return found;
    for (const Json& each : list_at(*slice, {"endpoints"})) found.push_back(each["addresses"][0]);
    return found;
  }
  int writes() { return server_.requests("POST") + server_.requests("PATCH"); }
  void refuse(Method method, int status, const std::string& reason, const std::string& cause = "") {
    server_.set_faults([=](const Request& request) {
      testing::FakeApiServer::Fault fault;
      if (request.method != method) return fault;
      const Json body = {{"kind", "Status"},
                         {"reason", reason},
                         {"message", "endpointslices is refused"},
                         {"details", {{"causes", Json::array({{{"reason", cause}}})}}}};
      fault.answer = Response{status, body.dump(), {}, ""};
      return fault;
    });
  }
  // What its informer does meanwhile is not told by anything else.
  template <typename Condition>
  static bool comes(Condition condition) {
    const SystemClock clock;
    for (const Deadline deadline = Deadline::after(clock.now(), 20s); !condition();
         std::this_thread::yield()) {
      if (deadline.expired(clock.now())) return false;
    }
    return true;
  }
};

TEST_F(NamePublisherTest, PodsThatAreAllThereAreWrittenAtOnceAndOnce) {
  begin();
  pod(0, "10.0.0.1");
  EXPECT_EQ(publish(), kGathering);
  EXPECT_EQ(writes(), 0);
  pod(1, "10.0.0.2");
  EXPECT_EQ(publish(), std::nullopt);
  EXPECT_THAT(addresses(), ElementsAre("10.0.0.1", "10.0.0.2"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(publish(), std::nullopt);
  EXPECT_EQ(writes(), 1);
  EXPECT_EQ(server_.requests("POST /apis/discovery.k8s.io/v1/namespaces/n/endpointslices"), 1);
  EXPECT_EQ(server_.requests("GET /apis/discovery.k8s.io/v1/endpointslices?limit="), 1) << "one list";
}

TEST_F(NamePublisherTest, AddressIsWrittenAfterASecondWithoutTheSlowOne) {
  begin();
  pod(0, "10.0.0.1");
  pod(1, "");
  EXPECT_EQ(publish(), kGathering);
  clock_.advance(kGathering - 1ms);
  EXPECT_EQ(publish(), 1ms);
  clock_.advance(1ms);
  EXPECT_EQ(publish(), std::nullopt);
  EXPECT_THAT(addresses(), ElementsAre("10.0.0.1"));
  pods_.clear();
  EXPECT_EQ(publish(), kGathering) << "a new change gathers anew";
  clock_.advance(kGathering);
  EXPECT_EQ(publish(), std::nullopt);
  EXPECT_THAT(addresses(), ElementsAre());
  EXPECT_EQ(server_.requests("PATCH"), 1);
}

TEST_F(NamePublisherTest, AControllerThatBeginsWritesNothingThatIsRight) {
  begin();
  pod(0, "10.0.0.1");
  pod(1, "10.0.0.2");
  EXPECT_EQ(publish(), std::nullopt);
  begin();
  EXPECT_EQ(publish(), std::nullopt);
  EXPECT_EQ(writes(), 1);
}

TEST_F(NamePublisherTest, ADeletedSliceComesBackAndAChangedOneIsMended) {
  begin();
  pod(0, "10.0.0.1");
  pod(1, "10.0.0.2");
  EXPECT_EQ(publish(), std::nullopt);
  server_.erase("endpointslices", "n", kSlice);
  EXPECT_TRUE(comes([&] { return publish() == std::nullopt && addresses().size() == 2; }));
  server_.change("endpointslices", "n", kSlice, [](Json& slice) { slice["endpoints"].erase(0); });
  EXPECT_TRUE(comes([&] { return publish() == std::nullopt && addresses().size() == 2; }));
}

// Its watch has not brought it yet.
TEST_F(NamePublisherTest, ASliceThatIsThereAlreadyIsLookedAtAndWrittenOnlyIfItIsWrong) {
  server_.set_faults([](const Request& request) {
    testing::FakeApiServer::Fault fault;
    if (request.path.find("watch=true") != std::string::npos) fault.answer = Response{503, "", {}, ""};
    return fault;
  });
  begin();
  const auto blind = make(never);
  ASSERT_TRUE(comes([&] { return *blind->publish(owner(), 2, {}) == std::nullopt; }));
  pod(0, "10.0.0.1");
  pod(1, "10.0.0.2");
  EXPECT_EQ(publish(), std::nullopt);
  EXPECT_TRUE(absl::IsAborted(blind->publish(owner(), 2, pods_).status()));
  EXPECT_EQ(*blind->publish(owner(), 2, pods_), std::nullopt);
  EXPECT_EQ(server_.requests("PATCH"), 0) << "it is right";
  pods_.pop_back();
  pod(1, "10.0.0.3");
  EXPECT_EQ(publish(), std::nullopt);
  pods_.pop_back();
  pod(1, "10.0.0.4");
  EXPECT_TRUE(absl::IsAborted(blind->publish(owner(), 2, pods_).status()))
      << "what it knows is older than what it would overwrite";
  EXPECT_THAT(addresses(), ElementsAre("10.0.0.1", "10.0.0.3"));
}

TEST_F(NamePublisherTest, SomebodyElsesSliceIsLeftAlone) {
  begin();
  server_.create("endpointslices", "n", {{"metadata", {{"name", kSlice}}}});
  pod(0, "10.0.0.1");
  pod(1, "10.0.0.2");
  const absl::Status status = ask().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("endpointslice n/j-0-ipv4 exists, but is not"));
  EXPECT_EQ(server_.requests("PATCH"), 0);
}

TEST_F(NamePublisherTest, RefusalsAreToldAndTriedAgain) {
  begin();
  pod(0, "10.0.0.1");
  pod(1, "10.0.0.2");
  refuse(Method::kPost, 403, "Forbidden");
  EXPECT_TRUE(absl::IsPermissionDenied(ask().status()));
  EXPECT_THAT(std::string(ask().status().message()), HasSubstr("endpointslice n/j-0-ipv4: POST"));
  refuse(Method::kPost, 422, "Invalid");
  EXPECT_TRUE(absl::IsInvalidArgument(ask().status()));
  refuse(Method::kPost, 404, "NotFound");
  EXPECT_TRUE(absl::IsNotFound(ask().status())) << "the namespace is gone";
  refuse(Method::kPost, 403, "Forbidden", "NamespaceTerminating");
  EXPECT_TRUE(absl::IsCancelled(ask().status()));
  server_.set_faults({});
  EXPECT_EQ(publish(), std::nullopt);
  EXPECT_EQ(addresses().size(), 2u);
  pods_.pop_back();
  pod(1, "10.0.0.3");
  refuse(Method::kPatch, 409, "Conflict");
  EXPECT_TRUE(absl::IsAborted(ask().status()));
  refuse(Method::kPatch, 404, "NotFound");
  EXPECT_TRUE(absl::IsAborted(ask().status())) << "its watch will tell that it was deleted";
  refuse(Method::kPatch, 403, "Forbidden");
  EXPECT_TRUE(absl::IsPermissionDenied(ask().status()));
  server_.set_faults({});
  EXPECT_EQ(publish(), std::nullopt) << "what was due stays due";
  EXPECT_THAT(addresses(), ElementsAre("10.0.0.1", "10.0.0.3"));
}

TEST_F(NamePublisherTest, MissingRightToListIsNamedAndNothingIsWritten) {
  refuse(Method::kGet, 403, "Forbidden");
  begin();
  pod(0, "10.0.0.1");
  pod(1, "10.0.0.2");
  EXPECT_TRUE(comes([&] { return absl::IsPermissionDenied(ask().status()); }));
  EXPECT_THAT(std::string(ask().status().message()), HasSubstr("endpointslices is refused"));
  EXPECT_TRUE(publisher_->publish(owner(), 0, {}).ok()) << "a job without pods misses nothing";
  EXPECT_EQ(writes(), 0);
  server_.set_faults({});
  EXPECT_TRUE(comes([&] { return publish() == std::nullopt; }));
  EXPECT_EQ(addresses().size(), 2u);
}

// By which label it is ours, and the job's, too.
TEST_F(NamePublisherTest, LabelsThatSomebodyTakesComeBack) {
  begin();
  pod(0, "10.0.0.1");
  pod(1, "10.0.0.2");
  EXPECT_EQ(publish(), std::nullopt);
  for (const bool other : {false, true}) {
    server_.change("endpointslices", "n", kSlice, [&](Json& slice) {
      Json& labels = slice["metadata"]["labels"];
      labels.erase(kJobNameLabel);
      if (other) labels[kJobNameLabel] = "another";
    });
    EXPECT_TRUE(comes([&] {
      return publish() == std::nullopt && text_at(*server_.find("endpointslices", "n", kSlice),
                                                  {"metadata", "labels", kJobNameLabel}) == "j";
    }));
  }
  EXPECT_TRUE(comes([&] { return publish() == std::nullopt; }));
  const int written = writes();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(publish(), std::nullopt);
  EXPECT_EQ(writes(), written);
}

// As where OwnerReferencesPermissionEnforcement is on, until the garbage collector has taken the slice.
TEST_F(NamePublisherTest, AnEarlierJobsSliceThatMayNotBeTakenOverIsWaitedFor) {
  begin();
  pod(0, "10.0.0.1", "earlier");
  pod(1, "10.0.0.2", "earlier");
  EXPECT_EQ(*publisher_->publish(owner("earlier"), 2, pods_), std::nullopt);
  pods_.clear();
  pod(0, "10.0.0.3");
  pod(1, "10.0.0.4");
  refuse(Method::kPatch, 403, "Forbidden");
  EXPECT_TRUE(absl::IsAborted(ask().status()));
  server_.erase("endpointslices", "n", kSlice);
  EXPECT_TRUE(comes([&] { return publish() == std::nullopt; }));
  EXPECT_THAT(addresses(), ElementsAre("10.0.0.3", "10.0.0.4"));
}

TEST_F(NamePublisherTest, AnotherJobOfThisNameTakesTheSliceOver) {
  begin();
  pod(0, "10.0.0.1");
  pod(1, "10.0.0.2");
  EXPECT_EQ(publish(), std::nullopt);
  pods_.clear();
  pod(0, "10.0.0.3", "another");
  pod(1, "10.0.0.4", "another");
  EXPECT_EQ(*publisher_->publish(owner("another"), 2, pods_), std::nullopt);
  EXPECT_EQ(owner_uid(*server_.find("endpointslices", "n", kSlice)), "another");
  EXPECT_THAT(addresses(), ElementsAre("10.0.0.3", "10.0.0.4"));
}

}  // namespace
}  // namespace paceline::kube
