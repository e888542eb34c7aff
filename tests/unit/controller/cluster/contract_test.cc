// What every Cluster keeps, run against each implementation. A harness makes pods do things: in a real
// cluster by their commands, in the fake one by a call.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "base/guarded.h"
#include "controller/cluster/kube/kube_cluster.h"
#include "controller/cluster/local/local_cluster.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/controller/cluster/real_server.h"

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;

class Harness {
 public:
  virtual ~Harness() = default;
  virtual Cluster& cluster() = 0;
  // Commands of pods that run until they are deleted, that end with a code, that can't be started. `let`
  // makes them do it.
  virtual std::vector<std::string> runs_on() { return {"sleep", "1000"}; }
  virtual std::vector<std::string> ends_with(int code) {
    return {"sh", "-c", "exit " + std::to_string(code)};
  }
  virtual std::vector<std::string> cannot_start() { return {"/nowhere/program"}; }
  virtual void let(const std::string& /*pod*/) {}
  virtual bool has_pids() { return true; }
  virtual void kill(const Pod& pod, int signal) { ::kill(static_cast<pid_t>(pod.pid), signal); }
};

class LocalHarness final : public Harness {
 public:
  LocalHarness() {
    auto made = LocalCluster::make({folder_.path() + "/run", binary_path("bin/paceline-pod"), {}}, clock_);
    PL_CHECK(made.ok(), "the local cluster is made");
    cluster_ = *std::move(made);
  }
  Cluster& cluster() override { return *cluster_; }

 private:
  TemporaryFolder folder_;
  SystemClock clock_;
  std::unique_ptr<LocalCluster> cluster_;
};

class FakeHarness final : public Harness {
 public:
  Cluster& cluster() override { return cluster_; }
  std::vector<std::string> runs_on() override { return {"run"}; }
  std::vector<std::string> ends_with(int code) override { return {"end", std::to_string(code)}; }
  std::vector<std::string> cannot_start() override { return {"fail"}; }
  void let(const std::string& pod) override {
    const auto pods = cluster_.list_pods("default", "job");
    for (const Pod& each : *pods) {
      if (each.spec.name != pod) continue;
      if (each.spec.command[0] == "fail")
        return cluster_.fail_to_start(pod, "/nowhere/program: No such file");
      cluster_.run(pod);
      if (each.spec.command[0] == "end") cluster_.finish(pod, std::stoi(each.spec.command[1]));
    }
  }
  void kill(const Pod& pod, int signal) override { cluster_.kill(pod.spec.name, signal); }

 private:
  SystemClock clock_;
  FakeCluster cluster_{clock_};
};

// KubeCluster on an API server in memory; the harness is scheduler and kubelet.
class KubeHarness final : public Harness {
 public:
  KubeHarness() { PL_CHECK(cluster_.wait_synced(20s).ok(), "an empty server is listed"); }
  Cluster& cluster() override { return cluster_; }
  std::vector<std::string> runs_on() override { return {"run"}; }
  std::vector<std::string> ends_with(int code) override { return {"end", std::to_string(code)}; }
  std::vector<std::string> cannot_start() override { return {"/nowhere/program"}; }
  bool has_pids() override { return false; }
  void let(const std::string& pod) override {
    server_.change("pods", "default", pod, [](kube::Json& json) {
      json["spec"]["nodeName"] = "node-1";
      const kube::Json command = json["spec"]["containers"][0]["command"];
      if (command[0] == "/nowhere/program") {
        end(json, 128, "StartError", "exec: \"/nowhere/program\": no such file or directory");
      } else if (command[0] == "end") {
        const int code = std::stoi(command[1].get<std::string>());
        end(json, code, code == 0 ? "Completed" : "Error", "");
      } else {
        json["status"]["phase"] = "Running";
        json["status"]["podIP"] = "10.0.0.1";
        json["status"]["containerStatuses"] = {
            {{"name", "trainer"}, {"state", {{"running", {{"startedAt", "2026-01-31T12:00:01Z"}}}}}}};
      }
    });
  }
  void kill(const Pod& pod, int signal) override {
    server_.change("pods", pod.spec.ns, pod.spec.name,
                   [&](kube::Json& json) { end(json, 128 + signal, "Error", ""); });
  }

 private:
  static void end(kube::Json& pod, int code, const char* reason, const char* message) {
    pod["status"]["phase"] = code == 0 ? "Succeeded" : "Failed";
    const kube::Json terminated = {{"exitCode", code},
                                   {"reason", reason},
                                   {"message", message},
                                   {"startedAt", "2026-01-31T12:00:01Z"},
                                   {"finishedAt", "2026-01-31T12:00:02Z"}};
    pod["status"]["containerStatuses"] = {{{"name", "trainer"}, {"state", {{"terminated", terminated}}}}};
  }
  SystemClock clock_;
  FakeApiServer server_;
  kube::ApiClient api_{server_, clock_, 1};
  kube::KubeCluster cluster_{api_, clock_, Logger::none(), {}};
};

class RealHarness final : public Harness {
 public:
  Cluster& cluster() override { return server_.cluster(); }
  std::vector<std::string> runs_on() override {
    return {"sh", "-c",
            "trap 'exit 0' TERM; while :; do sleep 0.1; done"};  // the first of a pod needs a trap
  }
  bool has_pids() override { return false; }
  void kill(const Pod& pod, int signal) override { RealServer::kill(pod, signal); }

 private:
  RealServer server_;
};

struct Implementation {
  const char* name;
  std::unique_ptr<Harness> (*make)();
};

class ContractTest : public ::testing::TestWithParam<Implementation> {
 protected:
  ContractTest() : harness_(GetParam().make()) {
    cluster().watch([this](const std::string& key) { calls_.lock()->push_back(key); });
  }
  ~ContractTest() override { cluster().watch({}); }

  Cluster& cluster() { return harness_->cluster(); }
  PodSpec spec(const std::string& name, std::vector<std::string> command) {
    PodSpec result;
    result.name = name;
    result.job = "job";
    result.command = std::move(command);
    return result;
  }
  std::vector<Pod> list() {
    auto pods = cluster().list_pods("default", "job");
    EXPECT_TRUE(pods.ok()) << pods.status();
    return *std::move(pods);
  }
  // Waits, woken by the watch, until `condition` holds for the job's pods.
  template <typename Condition>
  std::vector<Pod> wait_until(Condition condition) {
    for (;;) {
      const std::size_t seen = calls_.lock()->size();
      std::vector<Pod> pods = list();
      if (condition(pods)) return pods;
      bool woken = false;
      calls_.lock_when([&](const auto& calls) { return calls.size() > seen; }, 20s, &woken);
      if (!woken) {
        ADD_FAILURE() << "the watch told of nothing for 20 s";
        return pods;
      }
    }
  }
  Pod create(const std::string& name, std::vector<std::string> command) {
    auto pod = cluster().create_pod(spec(name, std::move(command)));
    EXPECT_TRUE(pod.ok()) << pod.status();
    harness_->let(name);
    return *std::move(pod);
  }

  std::unique_ptr<Harness> harness_;
  Guarded<std::vector<std::string>> calls_;
};

TEST_P(ContractTest, AnEmptyClusterListsNothing) {
  EXPECT_TRUE(list().empty());
}

TEST_P(ContractTest, APodRunsAndIsListedOnce) {
  const Pod created = create("b", harness_->runs_on());
  create("a", harness_->runs_on());
  EXPECT_FALSE(created.uid.empty());
  const auto pods = wait_until([](const auto& pods) {
    return pods.size() == 2 && pods[0].phase == PodPhase::kRunning && pods[1].phase == PodPhase::kRunning;
  });
  EXPECT_EQ(pods[0].spec.name, "a");
  EXPECT_EQ(pods[1].spec.name, "b");
  EXPECT_EQ(pods[1].uid, created.uid);
  EXPECT_NE(pods[0].uid, pods[1].uid);
  EXPECT_EQ(pods[0].pid > 0, harness_->has_pids());
  EXPECT_TRUE(pods[0].started.has_value());
  EXPECT_FALSE(pods[0].deleting);
  EXPECT_FALSE(pods[0].host.empty());
}

TEST_P(ContractTest, OnlyTheJobsOwnPodsAreListed) {
  create("a", harness_->runs_on());
  PodSpec other = spec("other", harness_->runs_on());
  other.job = "another";
  ASSERT_TRUE(cluster().create_pod(other).ok());
  EXPECT_EQ(list().size(), 1u);
  EXPECT_TRUE(cluster().list_pods("elsewhere", "job")->empty());
}

TEST_P(ContractTest, ASecondCreationIsRefusedAndChangesNothing) {
  const Pod first = create("a", harness_->runs_on());
  const auto second = cluster().create_pod(spec("a", harness_->runs_on()));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  ASSERT_EQ(list().size(), 1u);
  EXPECT_EQ(list()[0].uid, first.uid);
}

TEST_P(ContractTest, BadSpecsAreRefused) {
  EXPECT_EQ(cluster().create_pod(spec("", harness_->runs_on())).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cluster().create_pod(spec("../a", harness_->runs_on())).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cluster().create_pod(spec("a", {})).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(list().empty());
}

TEST_P(ContractTest, ASignalIsReported) {
  create("a", harness_->runs_on());
  const auto running = wait_until([](const auto& pods) { return pods[0].phase == PodPhase::kRunning; });
  harness_->kill(running[0], SIGKILL);
  const auto pods = wait_until([](const auto& pods) { return pods[0].ended(); });
  EXPECT_EQ(pods[0].phase, PodPhase::kFailed);
  EXPECT_EQ(pods[0].signal, SIGKILL);
  EXPECT_EQ(pods[0].exit_code, std::nullopt);
  EXPECT_TRUE(pods[0].finished.has_value());
}

TEST_P(ContractTest, ExitCodesAreReportedAndEndedPodsStay) {
  create("good", harness_->ends_with(0));
  create("bad", harness_->ends_with(7));
  const auto pods = wait_until([](const auto& pods) { return pods[0].ended() && pods[1].ended(); });
  EXPECT_EQ(pods[0].exit_code, 7);
  EXPECT_EQ(pods[0].phase, PodPhase::kFailed);
  EXPECT_EQ(pods[0].reason, "Error");
  EXPECT_EQ(pods[1].exit_code, 0);
  EXPECT_EQ(pods[1].phase, PodPhase::kSucceeded);
  EXPECT_EQ(pods[1].signal, std::nullopt);
  EXPECT_EQ(cluster().create_pod(spec("bad", harness_->runs_on())).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_P(ContractTest, ACommandThatCannotStartIsAFailedPod) {
  create("a", harness_->cannot_start());
  const auto pods = wait_until([](const auto& pods) { return pods[0].ended(); });
  EXPECT_EQ(pods[0].phase, PodPhase::kFailed);
  EXPECT_EQ(pods[0].reason, "StartError");
  EXPECT_THAT(pods[0].message, ::testing::HasSubstr("/nowhere/program"));
  EXPECT_EQ(pods[0].exit_code, std::nullopt);
}

TEST_P(ContractTest, ADeletedPodDisappearsAndItsNameIsFree) {
  const Pod first = create("a", harness_->runs_on());
  ASSERT_TRUE(cluster().delete_pod("default", "a", first.uid, 10s).ok());
  wait_until([](const auto& pods) { return pods.empty(); });
  EXPECT_EQ(cluster().delete_pod("default", "a", first.uid, 10s).code(), absl::StatusCode::kNotFound);
  EXPECT_NE(create("a", harness_->runs_on()).uid, first.uid);
}

TEST_P(ContractTest, AnEndedPodCanBeDeleted) {
  const Pod pod = create("a", harness_->ends_with(1));
  wait_until([](const auto& pods) { return pods[0].ended(); });
  ASSERT_TRUE(cluster().delete_pod("default", "a", "", 10s).ok());
  wait_until([](const auto& pods) { return pods.empty(); });
}

TEST_P(ContractTest, DeletionNamesTheUid) {
  create("a", harness_->runs_on());
  EXPECT_EQ(cluster().delete_pod("default", "a", "another uid", 0s).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cluster().delete_pod("elsewhere", "a", "", 0s).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cluster().delete_pod("default", "b", "", 0s).code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(list().at(0).deleting);
}

TEST_P(ContractTest, TheWatchNamesTheJob) {
  create("a", harness_->ends_with(0));
  wait_until([](const auto& pods) { return pods[0].ended(); });
  for (const std::string& key : *calls_.lock()) EXPECT_EQ(key, "default/job");
}

TEST_P(ContractTest, ANewWatcherHearsOfWhatIsThere) {
  create("a", harness_->runs_on());
  wait_until([](const auto& pods) { return pods[0].phase == PodPhase::kRunning; });
  Guarded<int> calls(0);
  cluster().watch([&](const std::string&) { ++*calls.lock(); });
  bool called = false;
  calls.lock_when([](int count) { return count > 0; }, 20s, &called);
  EXPECT_TRUE(called);
  cluster().watch({});
}

TEST_P(ContractTest, EnsuredJobKeepsItsToken) {
  EXPECT_EQ(cluster().ensure_job({"default", "job", "job-uid", "the first token"}).value_or("none"),
            "the first token");
  EXPECT_EQ(cluster().ensure_job({"default", "job", "job-uid", "another token"}).value_or("none"),
            "the first token");
  EXPECT_TRUE(list().empty());
}

TEST_P(ContractTest, EventsAndLogsAreAccepted) {
  EXPECT_TRUE(cluster().record_event({"default", "job", true, "Reason", "A \"sentence\".\n"}).ok());
  const Pod pod = create("a", harness_->ends_with(0));
  wait_until([](const auto& pods) { return pods[0].ended(); });
  EXPECT_TRUE(cluster().tail_log(list()[0], 5).ok());
}

template <typename T>
std::unique_ptr<Harness> make() {
  return std::make_unique<T>();
}

std::vector<Implementation> implementations() {
  std::vector<Implementation> all = {Implementation{"Local", make<LocalHarness>},
                                     Implementation{"Fake", make<FakeHarness>},
                                     Implementation{"Kube", make<KubeHarness>}};
  if (std::getenv(kContractKubeconfig) != nullptr) all.push_back({"RealServer", make<RealHarness>});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Clusters, ContractTest, ::testing::ValuesIn(implementations()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace paceline::cluster
