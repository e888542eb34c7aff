// The whole controller in this process, against an API server in memory.

#include "controller/bin/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <latch>

#include "absl/strings/escaping.h"
#include "base/guarded.h"
#include "base/text.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/curl_transport.h"
#include "controller/cluster/kube/manifest.h"
#include "controller/lease/election_core.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"

namespace paceline::controller {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr Duration kPatience = std::chrono::seconds(60);

kube::Json job(const std::string& name) {
  return {{"apiVersion", "paceline.dev/v1alpha1"},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", name}, {"namespace", "default"}}},
          {"spec",
           {{"replicaSpecs", {{"worker", {{"replicas", 2}}}}},
            {"training",
             {{"model", {{"type", "mlp"}, {"hidden", {8}}, {"classes", 2}}},
              {"data", {{"format", "csv"}, {"train", {{"inputs", "train.csv"}}}}},
              {"optimizer", {{"type", "SGD"}, {"learningRate", 0.1}}},
              {"globalBatchSize", 8},
              {"steps", 10}}}}}};
}

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() {
    server_.set_faults([this](const kube::Request& request) {
      if (request.path.find("/leases") != std::string::npos)
        longest_lease_call_ = std::max(longest_lease_call_.load(), request.timeout);
      ++*requests_.lock();  // wakes who waits: something happens
      return FakeApiServer::Fault{};
    });
  }
  std::unique_ptr<Controller> start(const std::string& identity, const Clock* election_clock = nullptr,
                                    Config config = {}) {
    config.health_address = config.coordinator_listen = "127.0.0.1:0";
    config.trainer_image = "paceline:test";
    config.leader_election.ns = "paceline-system";
    auto started = Controller::start(
        {.config = config,
         .own_ns = "paceline-system",
         .identity = identity,
         .own_host = "127.0.0.9",
         .election_clock = election_clock,
         .transport_of = [](const std::string&) { return absl::UnimplementedError("nobody's"); },
         .on_lost = [this](const std::string& reason) { *lost_.lock() = reason; }},
        server_, clock_, Logger::none());
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }
  // Until the requests that the controller makes have brought it about.
  bool wait_for(const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::after(clock_.now(), kPatience);
    for (;;) {
      const std::uint64_t before = *requests_.lock();
      if (condition()) return true;
      const Duration left = deadline.remaining(clock_.now());
      if (left == Duration::zero()) return false;
      // A request is heard of before it is done: look again soon even without a next one.
      (void)requests_.lock_when([&](std::uint64_t n) { return n != before; },
                                std::min<Duration>(left, std::chrono::milliseconds(20)));
    }
  }
  std::vector<std::string> pods() const {
    std::vector<std::string> names;
    for (const auto& pod : server_.all("pods")) names.push_back(pod["metadata"]["name"]);
    return names;
  }
  std::optional<kube::Json> secret_of(const std::string& job) const {
    const kube::Json stored = server_.find("trainingjobs", "default", job).value_or(kube::Json());
    return server_.find("secrets", "default",
                        kube::secret_name(job, kube::text_at(stored, {"metadata", "uid"})));
  }
  // What its health port answers.
  static kube::Response ask(const Controller& controller, const std::string& path) {
    return ask({.server = str_cat("http://127.0.0.1:", controller.health_port())}, path);
  }
  static kube::Response ask(const kube::Endpoint& endpoint, const std::string& path) {
    const auto transport = kube::open_curl_transport(endpoint, kube::fixed_credentials({}), Logger::none());
    EXPECT_TRUE(transport.ok()) << transport.status();
    auto response = (*transport)->call({.path = path});
    EXPECT_TRUE(response.ok()) << response.status();
    return response.value_or(kube::Response());
  }

  SystemClock clock_;
  FakeApiServer server_;
  Guarded<std::uint64_t> requests_{std::uint64_t{0}};
  Guarded<std::string> lost_;
  std::atomic<Duration> longest_lease_call_{Duration::zero()};
};

TEST_F(ControllerTest, AJobGetsItsPods) {
  const std::unique_ptr<Controller> controller = start("a");
  ASSERT_TRUE(wait_for([&] { return controller->leads(); }));
  EXPECT_EQ(server_.requests("trainingjobs?limit="), 2) << "one list before it has the lease, one after";
  server_.create("trainingjobs", "default", job("first"));
  ASSERT_TRUE(wait_for([&] { return pods().size() == 2; }));
  EXPECT_THAT(pods(), UnorderedElementsAre("first-worker-0-0", "first-worker-1-0"));
  EXPECT_TRUE(secret_of("first"));
  EXPECT_TRUE(server_.find("services", "default", "first"));
  const auto held = server_.find("leases", "paceline-system", "paceline-controller");
  ASSERT_TRUE(held);
  EXPECT_THAT(std::string((*held)["metadata"]["annotations"]["paceline.dev/coordinator-address"]),
              ::testing::MatchesRegex("127.0.0.9:[1-9][0-9]*"))
      << "where members find the leader";
  EXPECT_TRUE(controller->shut_down().ok());
  const auto lease = server_.find("leases", "paceline-system", "paceline-controller");
  ASSERT_TRUE(lease);
  EXPECT_EQ((*lease)["spec"]["holderIdentity"], "") << "given back";
}

TEST_F(ControllerTest, TheLeaseIsHeldForAsLongAsTheConfigurationSays) {
  Config config;
  config.leader_election.lease_duration_seconds = 45;
  config.leader_election.renew_deadline_seconds = 30;
  const std::unique_ptr<Controller> controller = start("a", nullptr, config);
  ASSERT_TRUE(wait_for([&] { return controller->leads(); }));
  const auto lease = server_.find("leases", "paceline-system", "paceline-controller");
  ASSERT_TRUE(lease);
  EXPECT_EQ((*lease)["spec"]["leaseDurationSeconds"], 45);
  EXPECT_TRUE(controller->shut_down().ok());
}

// The second creation waits until there is a third.
TEST_F(ControllerTest, PodsOfAJobAreMadeAtTheSameTime) {
  Guarded<int> asked{0};
  std::atomic<bool> met{true};
  server_.set_faults([&](const kube::Request& request) {
    if (request.path.find("/pods?fieldManager") != std::string::npos && ++*asked.lock() == 2) {
      bool in_time = false;
      (void)asked.lock_when([](int n) { return n >= 3; }, kPatience, &in_time);
      met = in_time;
    }
    return FakeApiServer::Fault{};
  });
  const std::unique_ptr<Controller> controller = start("a");
  kube::Json four = job("first");
  four["spec"]["replicaSpecs"]["worker"]["replicas"] = 4;
  server_.create("trainingjobs", "default", four);
  EXPECT_TRUE(wait_for([&] { return pods().size() == 4; }));
  EXPECT_TRUE(met);
  server_.set_faults({});
  EXPECT_TRUE(controller->shut_down().ok());
}

TEST_F(ControllerTest, AJobThatWasRefusedRunsOnceItIsMended) {
  const std::unique_ptr<Controller> controller = start("a");
  kube::Json wrong = job("first");
  wrong["spec"]["training"]["steps"] = 0;
  server_.create("trainingjobs", "default", wrong);
  const auto status = [&](const char* field) {
    return kube::text_at(*server_.find("trainingjobs", "default", "first"), {"status", field});
  };
  ASSERT_TRUE(wait_for([&] { return status("reason") == "InvalidSpec"; }));
  EXPECT_TRUE(pods().empty());
  server_.change("trainingjobs", "default", "first", [](kube::Json& object) {
    object["spec"]["training"]["steps"] = 10;
    object["metadata"]["generation"] = 2;
  });
  ASSERT_TRUE(wait_for([&] { return pods().size() == 2; }));
  ASSERT_TRUE(wait_for([&] { return status("phase") == "Starting"; }));
  EXPECT_TRUE(controller->shut_down().ok());
}

TEST_F(ControllerTest, TheNextOneTakesOverWithoutMakingAnythingTwice) {
  server_.create("trainingjobs", "default", job("first"));
  std::unique_ptr<Controller> controller = start("a");
  ASSERT_TRUE(wait_for([&] { return pods().size() == 2; }));
  const auto token = secret_of("first");
  EXPECT_TRUE(token);
  ASSERT_TRUE(controller->shut_down().ok());
  controller = start("b");
  ASSERT_TRUE(wait_for([&] { return controller->leads(); }));
  server_.create("trainingjobs", "default", job("second"));
  ASSERT_TRUE(wait_for([&] { return pods().size() == 4; }));
  EXPECT_EQ(secret_of("first"), token);
  EXPECT_EQ(server_.requests("POST /api/v1/namespaces/default/pods"), 4);
  EXPECT_TRUE(controller->shut_down().ok());
}

TEST_F(ControllerTest, AReplicaThatWaitsActsOnNothing) {
  const std::unique_ptr<Controller> leader = start("a");
  ASSERT_TRUE(wait_for([&] { return leader->leads(); }));
  const std::unique_ptr<Controller> other = start("b");
  server_.create("trainingjobs", "default", job("first"));
  ASSERT_TRUE(wait_for([&] { return pods().size() == 2; }));
  EXPECT_FALSE(other->leads());
  EXPECT_TRUE(other->shut_down().ok());
  EXPECT_EQ((*server_.find("leases", "paceline-system", "paceline-controller"))["spec"]["holderIdentity"],
            "a")
      << "who does not hold it does not give it back";
  EXPECT_TRUE(leader->shut_down().ok());
}

// Or each job of a week would be a key there, deleted or not.
TEST_F(ControllerTest, AReplicaThatWaitsKeepsNoKeys) {
  const std::unique_ptr<Controller> leader = start("a");
  for (const char* const name : {"first", "second"}) server_.create("trainingjobs", "default", job(name));
  ASSERT_TRUE(wait_for([&] { return leader->leads() && pods().size() == 4; }));
  const int watches = server_.requests("watch=true");
  const std::unique_ptr<Controller> other = start("b");
  ASSERT_TRUE(wait_for([&] { return server_.requests("watch=true") >= watches + 3; }))
      << "it has told of what it listed";
  const std::string metrics = ask(*other, "/metrics").body;
  EXPECT_THAT(metrics, AllOf(HasSubstr("workqueue_depth{name=\"trainingjob\"} 0\n"),
                             HasSubstr("workqueue_adds_total{name=\"trainingjob\"} 0\n")));
  EXPECT_TRUE(leader->shut_down().ok());
  server_.create("trainingjobs", "default", job("third"));  // before it leads, or after
  ASSERT_TRUE(wait_for([&] { return pods().size() == 6; }));
  EXPECT_TRUE(other->shut_down().ok());
}

TEST_F(ControllerTest, ItsPortTellsHowItIsAndOneThatWaitsIsWarm) {
  server_.set_faults(
      [](const kube::Request&) { return FakeApiServer::Fault{.broken = absl::UnavailableError("down")}; });
  const std::unique_ptr<Controller> leader = start("a");
  EXPECT_EQ(ask(*leader, "/healthz").status, 200) << "the process lives";
  EXPECT_EQ(ask(*leader, "/readyz").status, 503);
  EXPECT_THAT(ask(*leader, "/readyz").body, HasSubstr("the caches are not warm yet"));
  server_.set_faults({});
  ASSERT_TRUE(wait_for([&] { return leader->leads(); }));
  server_.create("trainingjobs", "default", job("first"));
  ASSERT_TRUE(wait_for([&] { return pods().size() == 2; }));
  EXPECT_EQ(ask(*leader, "/readyz").status, 200);
  const int watches = server_.requests("watch=true");
  const std::unique_ptr<Controller> other = start("b");
  ASSERT_TRUE(wait_for([&] { return ask(*other, "/readyz").status == 200; }));
  EXPECT_FALSE(other->leads());
  ASSERT_TRUE(wait_for([&] { return server_.requests("watch=true") >= watches + 3; }))
      << "it follows whatever the leader follows";
  const std::string led = ask(*leader, "/metrics").body, waited = ask(*other, "/metrics").body;
  EXPECT_THAT(led, AllOf(HasSubstr("leader_election_master_status{name=\"paceline-controller\"} 1\n"),
                         HasSubstr("paceline_jobs{phase=\"Starting\"} 1\n"),
                         HasSubstr("paceline_job_phase{job_namespace=\"default\",job_name=\"first\","),
                         HasSubstr("paceline_stragglers{kind=\"Slow\"} 0\n"),
                         HasSubstr("paceline_events_total{reason=\"CreatingPods\"} 1\n"),
                         HasSubstr("rest_client_requests_total{code=\"201\",method=\"POST\"}"),
                         HasSubstr("controller_runtime_reconcile_time_seconds_bucket"),
                         HasSubstr("workqueue_adds_total{name=\"trainingjob\"}")));
  EXPECT_THAT(waited, AllOf(HasSubstr("leader_election_master_status{name=\"paceline-controller\"} 0\n"),
                            Not(HasSubstr("paceline_job"))));
  EXPECT_TRUE(other->shut_down().ok());
  EXPECT_TRUE(leader->shut_down().ok());
}

TEST_F(ControllerTest, LeaseIsGivenBackBeforeTheHistoryIsWritten) {
  std::atomic<bool> shows_when_written = false;  // of the lease: the last time is its end
  const TemporaryFolder folder;
  Config config;
  config.dashboard_address = "127.0.0.1:0";
  config.history.path = folder.path() + "/jobs.db";
  const std::unique_ptr<Controller> controller = start("a", nullptr, config);
  ASSERT_TRUE(wait_for([&] { return controller->leads(); }));
  server_.set_faults([&](const kube::Request& request) {
    if (request.path.find("/leases/") != std::string::npos && request.method != kube::Method::kGet)
      shows_when_written = controller->dashboard_port() != 0;
    return FakeApiServer::Fault{};
  });
  EXPECT_TRUE(controller->shut_down().ok());
  const auto lease = server_.find("leases", "paceline-system", "paceline-controller");
  EXPECT_NE((*lease)["spec"]["holderIdentity"], "a");
  EXPECT_TRUE(shows_when_written);
  EXPECT_EQ(controller->dashboard_port(), 0);
}

// Nobody else may begin while this one writes.
TEST_F(ControllerTest, ItsPortsSpeakTlsByTheAuthorityOfAllReplicas) {
  Config config;
  config.health_tls = config.dashboard_tls.enabled = true;
  config.dashboard_address = "127.0.0.1:0";
  config.coordinator_address = "paceline.paceline-system.svc:7070";
  const std::unique_ptr<Controller> controller = start("a", nullptr, config);
  ASSERT_TRUE(wait_for([&] { return controller->leads(); }));
  const auto secret = server_.find("secrets", "paceline-system", "paceline-controller-authority");
  ASSERT_TRUE(secret);
  std::string authority;
  ASSERT_TRUE(absl::Base64Unescape(kube::text_at(*secret, {"data", "tls.crt"}), &authority));
  for (const char* name : {"", "localhost", "paceline-coordinator", "paceline.paceline-system.svc"}) {
    const auto at = [&](int port) {
      return kube::Endpoint{
          .server = str_cat("https://127.0.0.1:", port), .ca_pem = authority, .tls_server_name = name};
    };
    EXPECT_EQ(ask(at(controller->health_port()), "/readyz").status, 200) << name;
    EXPECT_EQ(ask(at(controller->dashboard_port()), "/api/v1/jobs").status, 401) << name;
  }
}

TEST_F(ControllerTest, ProbesOverTlsAreAnsweredBeforeThereIsAnAuthority) {
  server_.set_faults(
      [](const kube::Request&) { return FakeApiServer::Fault{.broken = absl::UnavailableError("down")}; });
  Config config;
  config.health_tls = true;
  const std::unique_ptr<Controller> controller = start("a", nullptr, config);
  const kube::Endpoint kubelet{.server = str_cat("https://127.0.0.1:", controller->health_port()),
                               .insecure_skip_tls_verify = true};
  EXPECT_EQ(ask(kubelet, "/healthz").status, 200);
  EXPECT_EQ(ask(kubelet, "/readyz").status, 503);
}

TEST_F(ControllerTest, PassUnderWayEndsBeforeTheLeaseIsGivenBack) {
  constexpr Duration kHead = std::chrono::milliseconds(300);  // for one that gives it back too early
  std::latch asked(1);
  Guarded<bool> given_back{false};
  std::atomic<bool> first{true}, too_early{false};
  server_.set_faults([&](const kube::Request& request) {
    if (request.path.find("/leases") != std::string::npos &&
        request.body.find("\"holderIdentity\":\"\"") != std::string::npos) {
      *given_back.lock() = true;
    }
    const bool creation = request.path.find("/pods?fieldManager") != std::string::npos;
    if (creation && first.exchange(false)) {
      asked.count_down();
      too_early = *given_back.lock_when([](bool given) { return given; }, kHead);
    }
    return FakeApiServer::Fault{};
  });
  const std::unique_ptr<Controller> controller = start("a");
  server_.create("trainingjobs", "default", job("first"));
  asked.wait();
  EXPECT_TRUE(controller->shut_down().ok());
  EXPECT_FALSE(too_early);
  EXPECT_TRUE(*given_back.lock());
  EXPECT_THAT(pods(), UnorderedElementsAre("first-worker-0-0", "first-worker-1-0"));
  server_.set_faults({});
}

TEST_F(ControllerTest, AJobThatIsHeldUpHoldsUpNoOther) {
  Guarded<bool> go_on{false};
  server_.set_faults([&](const kube::Request& request) {
    const bool creation = request.path.find("/pods?fieldManager") != std::string::npos;
    if (creation && request.body.find("\"first-worker-") != std::string::npos) {
      (void)go_on.lock_when([](bool go) { return go; }, kPatience);
    }
    return FakeApiServer::Fault{};
  });
  const std::unique_ptr<Controller> controller = start("a");
  server_.create("trainingjobs", "default", job("first"));
  server_.create("trainingjobs", "default", job("second"));
  const bool second = wait_for([&] { return pods().size() == 2; });
  EXPECT_THAT(pods(), UnorderedElementsAre("second-worker-0-0", "second-worker-1-0"));
  *go_on.lock() = true;
  EXPECT_TRUE(second);
  EXPECT_TRUE(wait_for([&] { return pods().size() == 4; }));
  server_.set_faults({});
  EXPECT_TRUE(controller->shut_down().ok());
}

TEST_F(ControllerTest, ACallForTheLeaseThatHangsLeavesTimeForAnother) {
  const std::unique_ptr<Controller> controller = start("a");
  ASSERT_TRUE(wait_for([&] { return controller->leads(); }));
  EXPECT_GT(longest_lease_call_.load(), Duration::zero());
  EXPECT_LE(longest_lease_call_.load(), lease::ElectionConfig().renew_deadline / 2);
  EXPECT_TRUE(controller->shut_down().ok());
}

TEST_F(ControllerTest, ALeaderWhoseMachineWasSuspendedLeadsNoMore) {
  FakeClock election_clock;
  const std::unique_ptr<Controller> controller = start("a", &election_clock);
  ASSERT_TRUE(wait_for([&] { return controller->leads(); }));
  EXPECT_EQ(*lost_.lock(), "");
  election_clock.advance(lease::ElectionConfig().lease_duration);  // and all the others have not moved
  bool lost = false;
  (void)lost_.lock_when([](const std::string& reason) { return !reason.empty(); }, kPatience, &lost);
  EXPECT_TRUE(lost);
  EXPECT_FALSE(controller->leads());
}

TEST_F(ControllerTest, APortThatIsTakenIsSaidAtOnce) {
  Config config;
  config.health_address = "127.0.0.1:0";
  config.coordinator_listen = str_cat("unix-abstract:paceline-controller-test-", ::getpid());
  const auto first =
      Controller::start({.config = config, .identity = "a", .on_lost = {}}, server_, clock_, Logger::none());
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second =
      Controller::start({.config = config, .identity = "b", .on_lost = {}}, server_, clock_, Logger::none());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr("coordinator.listen"), HasSubstr(config.coordinator_listen)));
}

}  // namespace
}  // namespace paceline::controller
