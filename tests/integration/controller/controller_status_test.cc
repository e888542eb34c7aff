// The whole controller in this process, with a member that trains: what its progress costs the API server.

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "base/guarded.h"
#include "base/text.h"
#include "controller/bin/controller.h"
#include "controller/cluster/kube/manifest.h"
#include "runtime/member/membership.h"
#include "tests/support/fake_api_server.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;
// Its checkpoints outlive its pods: else its progress ends with them.
constexpr char kJob[] = R"({
  "apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "first", "namespace": "default"},
  "spec": {"replicaSpecs": {"worker": {"replicas": 1, "template": {"spec": {
    "containers": [{"name": "trainer"}], "volumes": [{"name": "paceline", "nfs": {"server": "s", "path": "/"}}]}}}}, "training": {
    "model": {"type": "mlp", "hidden": [8], "classes": 2}, "data": {"format": "csv", "train": {"inputs": "train.csv"}},
    "optimizer": {"type": "SGD", "learningRate": 0.1}, "globalBatchSize": 8, "steps": 1000000}}})";
constexpr char kStatusWrite[] =
    "PATCH /apis/paceline.dev/v1alpha1/namespaces/default/trainingjobs/first/status";

class ControllerStatusTest : public ::testing::Test {
 protected:
  ControllerStatusTest() {
    server_.set_faults([this](const kube::Request&) {
      ++*requests_.lock();  // wakes who waits: something happens
      return FakeApiServer::Fault{};
    });
  }
  // For 20 ms, or until the controller asks for something.
  void look_again() {
    const std::uint64_t before = *requests_.lock();
    (void)requests_.lock_when([&](std::uint64_t n) { return n != before; }, 20ms);
  }
  template <typename Condition>
  bool wait_for(Condition condition) {
    const Deadline deadline = Deadline::after(clock_.now(), kPatience);
    while (!condition() && !deadline.expired(clock_.now())) look_again();
    return condition();
  }
  kube::Json object(const char* plural, const char* name, const char* ns = "default") const {
    return server_.find(plural, ns, name).value_or(kube::Json());
  }
  kube::Json status() const { return kube::at(object("trainingjobs", "first"), {"status"}); }
  // Where the leader's coordinator listens, as members are told.
  std::string coordinator() const {
    const kube::Json lease = object("leases", "paceline-controller", "paceline-system");
    const std::string address =
        kube::text_at(lease, {"metadata", "annotations", "paceline.dev/coordinator-address"});
    return str_cat("127.0.0.1", address.substr(std::min(address.rfind(':'), address.size())));
  }
  void run_the_pod() {
    server_.change("pods", "default", "first-worker-0-0", [](kube::Json& pod) {
      pod["spec"]["nodeName"] = "node-1";
      const kube::Json trainer = {{"name", "trainer"},
                                  {"ready", true},
                                  {"state", {{"running", {{"startedAt", "2026-01-31T12:00:05Z"}}}}}};
      pod["status"] = {{"phase", "Running"}, {"containerStatuses", kube::Json::array({trainer})}};
    });
  }
  std::unique_ptr<member::Membership> attach() {
    member::Environment environment;
    environment.coordinator = coordinator();
    environment.job = "default/first";
    environment.role = Role::kWorker;
    environment.pod = "first-worker-0-0";
    environment.pod_uid = kube::text_at(object("pods", "first-worker-0-0"), {"metadata", "uid"});
    const std::string secret =
        kube::secret_name("first", kube::text_at(object("trainingjobs", "first"), {"metadata", "uid"}));
    EXPECT_TRUE(absl::Base64Unescape(kube::text_at(object("secrets", secret.c_str()), {"data", "token"}),
                                     &environment.token));
    member::Presence presence;
    presence.host_id = "host";
    presence.tcp = {"127.0.0.1:1"};
    auto member = member::Membership::attach(environment, presence, {}, clock_,
                                             Deadline::after(clock_.now(), kPatience));
    EXPECT_TRUE(member.ok()) << member.status();
    return member.ok() ? *std::move(member) : nullptr;
  }

  SystemClock clock_;
  FakeApiServer server_;
  Guarded<std::uint64_t> requests_{std::uint64_t{0}};
};

TEST_F(ControllerStatusTest, ProgressAloneIsWrittenOnceInTenSeconds) {
  controller::Config config;
  config.health_address = config.coordinator_listen = "127.0.0.1:0";
  config.trainer_image = "paceline:test";
  config.leader_election.ns = "paceline-system";
  auto controller = controller::Controller::start(
      {.config = config, .identity = "a", .own_host = "127.0.0.1", .on_lost = {}}, server_, clock_,
      Logger::none());
  ASSERT_TRUE(controller.ok()) << controller.status();
  server_.create("trainingjobs", "default", kube::Json::parse(kJob));
  ASSERT_TRUE(wait_for([&] { return !server_.all("pods").empty(); }));
  run_the_pod();
  const std::unique_ptr<member::Membership> member = attach();
  ASSERT_NE(member, nullptr);
  ASSERT_TRUE(member->wait_view(Generation{0}, Deadline::after(clock_.now(), kPatience)).ok());
  member->progress().set_generation(Generation{1});
  member->progress().set_phase(v1::TRAINING);
  ASSERT_TRUE(wait_for([&] { return kube::text_at(status(), {"phase"}) == "Running"; }));

  // Steps come for much longer than a second, each with a heartbeat of its own, and with a change of the pod
  // that means nothing and has the job looked at.
  const int before = server_.requests(kStatusWrite);
  Step step = 0;
  for (const Deadline end = Deadline::after(clock_.now(), 3500ms); !end.expired(clock_.now());) {
    ++step;
    member->progress().step_applied({step, step * 8, {}, 0, true, 0.5, 0.1, step});
    member->beat_now();
    server_.change("pods", "default", "first-worker-0-0",
                   [step](kube::Json& pod) { pod["metadata"]["annotations"]["seen"] = str_cat(step); });
    look_again();
  }
  EXPECT_LE(server_.requests(kStatusWrite) - before, 1);
  // What is no progress is not held back by it, and takes the progress along.
  server_.change("trainingjobs", "default", "first", [](kube::Json& job) {
    job["spec"]["runPolicy"]["suspend"] = true;
    job["metadata"]["generation"] = 2;
  });
  EXPECT_TRUE(wait_for([&] { return kube::integer_at(status(), {"progress", "step"}) > 0; }));
  EXPECT_TRUE((*controller)->shut_down().ok());
}

}  // namespace
}  // namespace paceline
