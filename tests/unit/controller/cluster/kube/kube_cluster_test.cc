// What is Kubernetes' alone; the rest is in tests/unit/controller/cluster/contract_test.cc.

#include "controller/cluster/kube/kube_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "absl/strings/escaping.h"
#include "base/text.h"
#include "controller/cluster/kube/manifest.h"
#include "controller/cluster/kube/resources.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string words(const absl::Status& status) {
  return std::string(status.message());
}

constexpr char kSecret[] = "j-token-job-uid";  // of job()

class KubeClusterTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeApiServer server_;
  ApiClient api_{server_, clock_, 1};
  Guarded<std::vector<std::string>> told_;
  std::unique_ptr<KubeCluster> cluster_ = make();

  std::unique_ptr<KubeCluster> make() {
    auto cluster = std::make_unique<KubeCluster>(
        api_, clock_, Logger::none(), KubeClusterOptions{.image = "image:1", .instance = "controller-0"});
    EXPECT_TRUE(cluster->wait_synced(20s).ok());
    cluster->watch([this](const std::string& key) { told_.lock()->push_back(key); });
    return cluster;
  }
  cluster::PodSpec spec(int index = 0) {
    cluster::PodSpec result;
    result.ns = "n";
    result.job = "j";
    result.job_uid = "job-uid";
    result.index = index;
    result.name = str_cat("j-worker-", index, "-0");
    result.command = {"run"};
    return result;
  }
  void answer(const std::string& path, int status, const Json& body) {
    server_.set_faults([=](const Request& request) {
      FakeApiServer::Fault fault;
      if (request.path.find(path) != std::string::npos) fault.answer = Response{status, body.dump(), {}, ""};
      return fault;
    });
  }
  cluster::JobObjects job(const std::string& token = "token-1") { return {"n", "j", "job-uid", token}; }
  // Waits until the watch brought a change for which this holds.
  template <typename Condition>
  bool comes(Condition condition) {
    for (;;) {
      const std::size_t seen = told_.lock()->size();
      if (condition()) return true;
      bool woken = false;
      told_.lock_when([&](const auto& told) { return told.size() > seen; }, 20s, &woken);
      if (!woken) return false;
    }
  }
};

TEST_F(KubeClusterTest, BeforeTheListHasComeNothingIsKnown) {
  answer("/pods", 503, Json::object());
  KubeCluster late(api_, clock_, Logger::none(), {.pause = [](Duration, std::stop_token stop) {
                     std::this_thread::yield();
                     return !stop.stop_requested();
                   }});
  EXPECT_EQ(late.list_pods("n", "j").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(late.wait_synced(0s).code(), absl::StatusCode::kDeadlineExceeded);
  server_.set_faults({});
  EXPECT_TRUE(late.wait_synced(20s).ok());
  EXPECT_TRUE(late.list_pods("n", "j").ok());
}

TEST_F(KubeClusterTest, CreatedPodIsListedAtOnce) {
  ASSERT_TRUE(cluster_->create_pod(spec()).ok());
  EXPECT_EQ(cluster_->list_pods("n", "j")->size(), 1u);
  EXPECT_EQ(cluster_->list_pods("n", "j")->at(0).spec.job_uid, "job-uid");
}

TEST_F(KubeClusterTest, AnotherListShowsWhatTheWatchHasNotBrought) {
  answer("watch=true", 503, Json::object());
  KubeCluster blind(api_, clock_, Logger::none(), {.pause = [](Duration, std::stop_token stop) {
                      return real_pause(1h, std::move(stop));
                    }});
  ASSERT_TRUE(blind.wait_synced(20s).ok());
  ASSERT_TRUE(cluster_->create_pod(spec()).ok());
  EXPECT_EQ(blind.list_pods("n", "j")->size(), 0u);
  blind.list_again();
  ASSERT_TRUE(blind.wait_synced(20s).ok());
  EXPECT_EQ(blind.list_pods("n", "j")->size(), 1u);
}

TEST_F(KubeClusterTest, APodThatTheWatchHasNotBroughtIsNotMadeTwice) {
  answer("watch=true", 503, Json::object());
  KubeCluster blind(api_, clock_, Logger::none(), {.pause = [](Duration, std::stop_token stop) {
                      return real_pause(1h, std::move(stop));
                    }});
  ASSERT_TRUE(blind.wait_synced(20s).ok());
  const auto made = cluster_->create_pod(spec());
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(absl::IsAlreadyExists(blind.create_pod(spec()).status()));
  ASSERT_EQ(blind.list_pods("n", "j")->size(), 1u);
  EXPECT_EQ(blind.list_pods("n", "j")->at(0).uid, made->uid);
}

TEST_F(KubeClusterTest, APodOfSomebodyElseIsNotOurs) {
  server_.create("pods", "n", {{"metadata", {{"name", "j-worker-0-0"}}}});
  const absl::Status status = cluster_->create_pod(spec()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(words(status), HasSubstr("pod n/j-worker-0-0 exists, but belongs to no TrainingJob"));
  ASSERT_TRUE(cluster_->create_pod(spec(1)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(cluster_->create_pod(spec(1)).status()));
}

// Kubernetes' garbage collector may not have come to it yet.
TEST_F(KubeClusterTest, EarlierJobsPodsAndServiceAreWaitedForButNotItsSecret) {
  ASSERT_TRUE(cluster_->create_pod(spec()).ok());
  ASSERT_TRUE(cluster_->ensure_job(job()).ok());
  cluster::PodSpec reborn = spec();
  reborn.job_uid = "another";
  cluster::JobObjects next{"n", "j", "another", "token-2"};
  EXPECT_TRUE(absl::IsUnavailable(cluster_->create_pod(reborn).status()));
  EXPECT_TRUE(absl::IsUnavailable(cluster_->ensure_job(next).status()));
  server_.erase("pods", "n", spec().name);
  server_.erase("services", "n", "j");
  EXPECT_EQ(cluster_->ensure_job(next).value_or("none"), "token-2");
  EXPECT_TRUE(cluster_->create_pod(reborn).ok());
  EXPECT_TRUE(server_.find("secrets", "n", kSecret)) << "the new one does not wait for its end";
}

TEST_F(KubeClusterTest, MembersThatAnEarlierVersionStartedKeepTheirToken) {
  Json earlier = secret_manifest({"n", "j", "job-uid"}, "");
  earlier["metadata"]["name"] = "j-token";
  earlier["data"]["token"] = absl::Base64Escape("token-0");
  server_.create("secrets", "n", earlier);
  ASSERT_TRUE(cluster_->create_pod(spec()).ok());
  EXPECT_EQ(cluster_->ensure_job(job()).value_or("none"), "token-0");
  EXPECT_EQ(make()->ensure_job(job()).value_or("none"), "token-0");
}

TEST_F(KubeClusterTest, ReasonThatOnlyEventsTellIsAskedFor) {
  ASSERT_TRUE(cluster_->create_pod(spec()).ok());
  server_.change("pods", "n", spec().name, [](Json& pod) {
    pod["spec"]["nodeName"] = "node-1";
    pod["status"]["phase"] = "Pending";
  });
  ASSERT_TRUE(comes([&] { return cluster_->list_pods("n", "j")->at(0).host == "node-1"; }));
  const std::string uid = cluster_->list_pods("n", "j")->at(0).uid;
  const Json event = {{"metadata", {{"name", "e1"}}},
                      {"type", "Warning"},
                      {"reason", "FailedMount"},
                      {"message", "MountVolume.SetUp failed for volume \"x\" : secret \"y\" not found"},
                      {"lastTimestamp", "2026-01-31T12:00:05Z"},
                      {"involvedObject", {{"uid", uid}}}};
  server_.create("events", "n", event);
  EXPECT_EQ(cluster_->list_pods("n", "j")->at(0).reason, "");
  EXPECT_EQ(server_.requests("/api/v1/namespaces/n/events"), 0) << "most pods start within seconds";
  clock_.advance(kOrdinaryStart);
  const cluster::Pod pod = cluster_->list_pods("n", "j")->at(0);
  EXPECT_EQ(pod.reason, "FailedMount");
  EXPECT_THAT(pod.message, HasSubstr("secret \"y\" not found"));
  EXPECT_EQ(cluster_->list_pods("n", "j")->at(0).reason, "FailedMount");
  EXPECT_EQ(server_.requests("/api/v1/namespaces/n/events"), 1);
  EXPECT_EQ(server_.requests("fieldSelector=involvedObject.uid%3D" + uid), 1);
  answer("/events", 403, {{"kind", "Status"}, {"message", "events is forbidden"}});
  clock_.advance(kBetweenQuestionsOfOne);
  EXPECT_EQ(cluster_->list_pods("n", "j")->at(0).reason, "FailedMount") << "asking is all that is refused";
}

// Each of 100 jobs is looked at every second, and none gets on.
TEST_F(KubeClusterTest, JobsThatDoNotStartCostFewRequestsHoweverManyTheyAre) {
  constexpr int kJobs = 100;
  const auto of_job = [](int i) { return str_cat("j", i); };
  const auto look = [&] {
    for (int second = 0; second < 60; ++second) {
      for (int i = 0; i < kJobs; ++i) {
        EXPECT_EQ(cluster_->list_pods("n", of_job(i))->size(), 1u);
        clock_.advance(10ms);
      }
    }
  };
  for (int i = 0; i < kJobs; ++i) {
    cluster::PodSpec one = spec();
    one.job = of_job(i);
    one.name = str_cat(one.job, "-worker-0-0");
    ASSERT_TRUE(cluster_->create_pod(one).ok());
    server_.change("pods", "n", one.name, [](Json& pod) {
      pod["status"] = {
          {"phase", "Pending"},
          {"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}}}};
    });
  }
  const auto none_left = [&](const auto& holds) {
    for (int i = 0; i < kJobs; ++i) {
      if (!holds(cluster_->list_pods("n", of_job(i))->at(0))) return false;
    }
    return true;
  };
  ASSERT_TRUE(comes(
      [&] { return none_left([](const cluster::Pod& pod) { return pod.reason == "Unschedulable"; }); }));
  const auto asked = [&] { return server_.requests("GET /api/v1/namespaces"); };
  const int before = asked();
  look();
  EXPECT_EQ(asked(), before) << "who has no node says why by itself";
  for (int i = 0; i < kJobs; ++i) {
    server_.change("pods", "n", str_cat(of_job(i), "-worker-0-0"), [](Json& pod) {
      pod["spec"]["nodeName"] = "node-1";
      pod["status"] = {{"phase", "Pending"}};
    });
  }
  ASSERT_TRUE(comes([&] { return none_left([](const cluster::Pod& pod) { return pod.host == "node-1"; }); }));
  look();
  EXPECT_GT(asked() - before, 60 * 4);
  EXPECT_LE(asked() - before, 60 * 5) << "five in a second";
  std::mutex mutex;
  std::vector<Request> questions;
  server_.set_faults([&](const Request& request) {
    FakeApiServer::Fault fault;
    if (request.path.find("/events") == std::string::npos) return fault;
    const std::lock_guard lock(mutex);
    questions.push_back(request);
    fault.broken = absl::DeadlineExceededError("no answer");
    return fault;
  });
  look();
  const std::lock_guard lock(mutex);
  EXPECT_GE(questions.size(), 5u);
  EXPECT_LE(questions.size(), 7u) << "a server that says nothing is left in peace";
  for (const Request& question : questions) EXPECT_LE(question.total, kQuestionLimit);
}

TEST_F(KubeClusterTest, AQuotaIsNoMissingRight) {
  answer("/pods", 403, {{"kind", "Status"}, {"message", "pods \"a\" is forbidden: exceeded quota: small"}});
  EXPECT_EQ(cluster_->create_pod(spec()).status().code(), absl::StatusCode::kResourceExhausted);
  answer("/pods", 403, {{"kind", "Status"}, {"message", "pods is forbidden: User \"x\" cannot create"}});
  EXPECT_EQ(cluster_->create_pod(spec()).status().code(), absl::StatusCode::kPermissionDenied);
  answer("/pods", 422, {{"kind", "Status"}, {"message", "spec.containers[0].image: Required value"}});
  const absl::Status invalid = cluster_->create_pod(spec()).status();
  EXPECT_EQ(invalid.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(words(invalid), HasSubstr("image: Required value"));
}

TEST_F(KubeClusterTest, InANamespaceThatEndsNothingIsCreated) {
  const Json status = Json::parse(R"({"kind": "Status", "reason": "Forbidden", "code": 403,
    "message": "pods \"a\" is forbidden: unable to create new content in namespace n because it is being terminated",
    "details": {"causes": [{"reason": "NamespaceTerminating", "message": "namespace n is being terminated"}]}})");
  answer("/namespaces/n/", 403, status);
  const absl::Status pod = cluster_->create_pod(spec()).status();
  EXPECT_EQ(pod.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(words(pod), HasSubstr("in namespace n because it is being terminated"));
  EXPECT_EQ(cluster_->ensure_job(job()).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(cluster_->record_event({"n", "j", true, "R", "m"}).code(), absl::StatusCode::kCancelled);
}

TEST_F(KubeClusterTest, ADeletionIsNeverWithoutGrace) {
  server_.end_deleted_at_once(false);
  const auto pod = cluster_->create_pod(spec());
  ASSERT_TRUE(cluster_->delete_pod("n", "j-worker-0-0", pod->uid, 0s).ok());
  EXPECT_EQ(
      integer_at(*server_.find("pods", "n", "j-worker-0-0"), {"metadata", "deletionGracePeriodSeconds"}), 1);
  EXPECT_TRUE(comes([&] { return cluster_->list_pods("n", "j")->at(0).deleting; }));
}

TEST_F(KubeClusterTest, ServiceAndSecretAreMadeOnce) {
  EXPECT_EQ(cluster_->ensure_job(job()).value_or("none"), "token-1");
  EXPECT_EQ(server_.requests("POST"), 2);
  EXPECT_EQ(owner_uid(*server_.find("services", "n", "j")), "job-uid");
  EXPECT_EQ(owner_uid(*server_.find("secrets", "n", kSecret)), "job-uid");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(cluster_->ensure_job(job("other")).value_or("none"), "token-1");
  EXPECT_EQ(server_.requests("POST"), 2);
  EXPECT_EQ(server_.requests("GET /api/v1/namespaces"), 0);
}

TEST_F(KubeClusterTest, AnotherControllersTokenStaysInForce) {
  ASSERT_TRUE(cluster_->ensure_job(job("token-1")).ok());
  const auto second = make();
  EXPECT_EQ(second->ensure_job(job("token-2")).value_or("none"), "token-1");
}

TEST_F(KubeClusterTest, ADeletedServiceComesBack) {
  ASSERT_TRUE(cluster_->ensure_job(job()).ok());
  server_.erase("services", "n", "j");
  EXPECT_TRUE(comes([&] {
    EXPECT_TRUE(cluster_->ensure_job(job()).ok());
    return server_.find("services", "n", "j").has_value();
  }));
}

TEST_F(KubeClusterTest, ADeletedSecretComesBackWhenAPodLacksIt) {
  ASSERT_TRUE(cluster_->ensure_job(job()).ok());
  ASSERT_TRUE(cluster_->create_pod(spec()).ok());
  server_.erase("secrets", "n", kSecret);
  server_.change("pods", "n", "j-worker-0-0", [](Json& pod) {
    pod["status"]["containerStatuses"] = {
        {{"name", "trainer"}, {"state", {{"waiting", {{"reason", "CreateContainerConfigError"}}}}}}};
  });
  EXPECT_TRUE(comes([&] {
    EXPECT_EQ(cluster_->ensure_job(job("new")).value_or("none"), "token-1") << "the members have this one";
    return server_.find("secrets", "n", kSecret).has_value();
  }));
}

TEST_F(KubeClusterTest, ADeletedSecretComesBackByItself) {
  ASSERT_TRUE(cluster_->ensure_job(job()).ok());
  server_.erase("secrets", "n", kSecret);
  clock_.advance(kSecretLook - 1s);
  EXPECT_EQ(cluster_->ensure_job(job("new")).value_or("none"), "token-1");
  EXPECT_EQ(server_.requests("/secrets"), 1) << "it is not asked for at every pass";
  clock_.advance(1s);
  EXPECT_EQ(cluster_->ensure_job(job("new")).value_or("none"), "token-1") << "the members have this one";
  EXPECT_TRUE(server_.find("secrets", "n", kSecret).has_value());
  clock_.advance(kSecretLook);
  const int before = server_.requests("POST");
  EXPECT_EQ(cluster_->ensure_job(job("new")).value_or("none"), "token-1");
  EXPECT_EQ(server_.requests("POST"), before) << "it is there";
}

// Each of 100 jobs is looked at ten times a second for two minutes.
TEST_F(KubeClusterTest, SecretsThatNobodyMissesCostARequestASecondForAllJobs) {
  const auto job_of = [&](int i) {
    return cluster::JobObjects{"n", str_cat("j", i), str_cat("uid-", i), "token"};
  };
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(cluster_->ensure_job(job_of(i)).ok());
  const int before = server_.requests("/secrets");
  for (int pass = 0; pass < 1200; ++pass) {
    clock_.advance(100ms);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(cluster_->ensure_job(job_of(i)).ok());
  }
  const int looks = server_.requests("/secrets") - before;
  EXPECT_LE(looks, 120 - 30 + 1);
  EXPECT_GT(looks, 80) << "each has its turn";
  for (int i = 0; i < 50; ++i)
    EXPECT_LE(server_.requests(str_cat("GET /api/v1/namespaces/n/secrets/j", i, "-token-uid-", i)), 4);
}

// A ConfigMap of the user's may be what it lacks.
TEST_F(KubeClusterTest, SecretOfAPodThatLacksAnotherObjectIsAskedForSeldom) {
  ASSERT_TRUE(cluster_->ensure_job(job()).ok());
  ASSERT_TRUE(cluster_->create_pod(spec()).ok());
  server_.change("pods", "n", spec().name, [](Json& pod) {
    pod["status"]["containerStatuses"] = {
        {{"name", "trainer"}, {"state", {{"waiting", {{"reason", "CreateContainerConfigError"}}}}}}};
  });
  ASSERT_TRUE(
      comes([&] { return cluster_->list_pods("n", "j")->at(0).reason == "CreateContainerConfigError"; }));
  for (int pass = 0; pass < 100; ++pass) {
    ASSERT_TRUE(cluster_->ensure_job(job()).ok());
    clock_.advance(100ms);
  }
  EXPECT_EQ(server_.requests("GET /api/v1/namespaces/n/secrets/j-token-job-uid"), 1);
  ASSERT_TRUE(cluster_->ensure_job(job()).ok());
  EXPECT_EQ(server_.requests("GET /api/v1/namespaces/n/secrets/j-token-job-uid"), 2);
}

TEST_F(KubeClusterTest, ForeignObjectIsLeftAlone) {
  server_.create("services", "n", {{"metadata", {{"name", "j"}}}});
  const absl::Status status = cluster_->ensure_job(job()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(words(status), HasSubstr("service n/j exists, but belongs to no TrainingJob; delete it"));
  server_.erase("services", "n", "j");
  server_.create("secrets", "n", {{"metadata", {{"name", kSecret}}}});
  EXPECT_THAT(words(cluster_->ensure_job(job()).status()), HasSubstr("secret n/j-token-job-uid exists"));
}

TEST_F(KubeClusterTest, ASecretWithoutATokenIsSaid) {
  ASSERT_TRUE(cluster_->ensure_job(job()).ok());
  server_.change("secrets", "n", kSecret, [](Json& secret) { secret["data"]["token"] = "%%%"; });
  EXPECT_THAT(words(make()->ensure_job(job()).status()), HasSubstr("no readable \"token\""));
}

TEST_F(KubeClusterTest, EarlierServiceComesToSelectPodsOnce) {
  server_.create(
      "services", "n",
      {{"metadata",
        {{"name", "j"},
         {"labels", {{kJobNameLabel, "j"}}},
         {"ownerReferences", {{{"kind", "TrainingJob"}, {"uid", "job-uid"}, {"controller", true}}}}}},
       {"spec", {{"clusterIP", "None"}, {"selector", {{"paceline.dev/nobody", "true"}}}}}});
  const auto begun = make();  // which has listed it
  for (int pass = 0; pass < 2; ++pass) EXPECT_TRUE(begun->ensure_job(job()).ok());
  EXPECT_TRUE(selects_pods(*server_.find("services", "n", "j"), "j"));
  EXPECT_EQ(server_.requests("PATCH /api/v1/namespaces/n/services/j"), 1);
}

TEST_F(KubeClusterTest, EventsAreCountedInsteadOfRepeated) {
  const cluster::Event event{"n", "j", true, "PodNotCreated", "quota \x1b[2J", "job-uid"};
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(cluster_->record_event(event).ok());
    clock_.advance(1s);
  }
  const auto events = server_.all("events");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(text_at(events[0], {"reason"}), "PodNotCreated");
  EXPECT_EQ(text_at(events[0], {"note"}), "quota ?[2J");
  EXPECT_EQ(text_at(events[0], {"type"}), "Warning");
  EXPECT_EQ(text_at(events[0], {"regarding", "uid"}), "job-uid");
  EXPECT_EQ(text_at(events[0], {"reportingInstance"}), "controller-0");
  EXPECT_EQ(integer_at(events[0], {"series", "count"}), 11);
  EXPECT_EQ(server_.requests("PATCH"), 1);
}

TEST_F(KubeClusterTest, EventsAreAboutTheJobOfThisUid) {
  ASSERT_TRUE(cluster_->ensure_job(job()).ok());  // of the first one of that name
  for (const char* uid : {"job-uid", "another"}) {
    EXPECT_TRUE(cluster_->record_event({"n", "j", false, "Suspended", "m", uid}).ok());
  }
  std::vector<std::string> uids;
  for (const Json& event : server_.all("events")) uids.push_back(text_at(event, {"regarding", "uid"}));
  EXPECT_THAT(uids, ::testing::UnorderedElementsAre("job-uid", "another"));
}

TEST_F(KubeClusterTest, AnEventThatTheServerForgotIsWrittenAgain) {
  const cluster::Event event{"n", "j", false, "R", "m"};
  ASSERT_TRUE(cluster_->record_event(event).ok());
  server_.erase("events", "n", text_at(server_.all("events")[0], {"metadata", "name"}));
  clock_.advance(kSeriesWrite);
  EXPECT_TRUE(cluster_->record_event(event).ok());
  EXPECT_EQ(server_.all("events").size(), 1u);
}

TEST_F(KubeClusterTest, TooManyEventsAreRefusedAndLostOnesTriedAgain) {
  for (int i = 0; i < kEventBurst; ++i) {
    EXPECT_TRUE(cluster_->record_event({"n", "j", false, "R", str_cat("m", i)}).ok());
  }
  EXPECT_EQ(cluster_->record_event({"n", "j", false, "R", "more"}).code(),
            absl::StatusCode::kResourceExhausted);
  answer("/events", 500, Json::object());
  EXPECT_FALSE(cluster_->record_event({"n", "k", false, "R", "m"}).ok());
  server_.set_faults({});
  EXPECT_TRUE(cluster_->record_event({"n", "k", false, "R", "m"}).ok());
  EXPECT_EQ(server_.all("events").size(), static_cast<std::size_t>(kEventBurst) + 1);
}

TEST_F(KubeClusterTest, LogsAreTheTrainers) {
  cluster::PodSpec with = spec();
  with.pod_template =
      R"({"spec": {"containers": [{"name": "side", "image": "s"}, {"name": "trainer", "image": "i"}]}})";
  const auto pod = cluster_->create_pod(with);
  server_.set_log("n", "j-worker-0-0", "last words");
  EXPECT_EQ(cluster_->tail_log(*pod, 5).value_or(""), "last words");
  EXPECT_EQ(server_.requests("/log?container=trainer&tailLines=5&limitBytes="), 1);
  server_.change("pods", "n", "j-worker-0-0", [](Json& object) {
    const Json fetch = {{"name", "fetch"},
                        {"state", {{"terminated", {{"exitCode", 3}, {"reason", "Error"}}}}}};
    object["status"] = {{"phase", "Failed"}, {"initContainerStatuses", Json::array({fetch})}};
  });
  ASSERT_TRUE(
      comes([&] { return cluster_->list_pods("n", "j")->at(0).phase == cluster::PodPhase::kFailed; }));
  EXPECT_EQ(cluster_->tail_log(*pod, 5).value_or(""), "last words");
  EXPECT_EQ(server_.requests("/log?container=fetch&"), 1) << "the trainer never ran";
}

// The API server itself tries for 30 s to reach a node that is cut off.
TEST_F(KubeClusterTest, ALogIsNotWaitedForAsLongAsTheApiServerTriesToReachItsNode) {
  const auto pod = cluster_->create_pod(spec());
  Guarded<std::vector<Duration>> timeouts;
  server_.set_faults([&](const Request& request) {
    FakeApiServer::Fault fault;
    if (request.path.find("/log?") == std::string::npos) return fault;
    timeouts.lock()->push_back(request.timeout);
    fault.answer = Response{429, "", kTailLimit, ""};
    return fault;
  });
  EXPECT_FALSE(cluster_->tail_log(*pod, 5).ok());
  EXPECT_THAT(*timeouts.lock(), ElementsAre(kTailLimit)) << "and what is repeated is within it, too";
  server_.set_faults({});
}

TEST_F(KubeClusterTest, AFieldThatTheApiServerDoesNotKnowIsNotDropped) {
  ASSERT_TRUE(cluster_->create_pod(spec()).ok());
  EXPECT_EQ(server_.requests("/pods?fieldManager=paceline-controller&fieldValidation=Strict"), 1);
}

TEST_F(KubeClusterTest, NodeIsAskedForItsTroubleNowAndThen) {
  const Json node = {
      {"metadata", {{"name", "node-1"}}},
      {"status", {{"conditions", Json::array({{{"type", "GpuUnhealthy"}, {"status", "True"}}})}}}};
  answer("/nodes/node-1", 200, node);
  EXPECT_EQ(cluster_->host_trouble("node-1"), "condition GpuUnhealthy");
  answer("/nodes/node-1", 403, {{"kind", "Status"}, {"code", 403}, {"reason", "Forbidden"}});
  EXPECT_EQ(cluster_->host_trouble("node-1"), "condition GpuUnhealthy");
  EXPECT_EQ(server_.requests("/nodes/node-1"), 1);
  clock_.advance(kBetweenNodeLooks);
  EXPECT_EQ(cluster_->host_trouble("node-1"), "condition GpuUnhealthy") << "nothing else is known";
  EXPECT_EQ(server_.requests("/nodes/node-1"), 2);
}

TEST_F(KubeClusterTest, OfANodeThatItMayNotSeeNothingIsKnown) {
  answer("/nodes/node-1", 403, {{"kind", "Status"}, {"code", 403}, {"reason", "Forbidden"}});
  EXPECT_EQ(cluster_->host_trouble("node-1"), "");
  EXPECT_EQ(cluster_->host_trouble("node-1"), "");
  EXPECT_EQ(server_.requests("/nodes/node-1"), 1);
}

}  // namespace
}  // namespace paceline::kube
