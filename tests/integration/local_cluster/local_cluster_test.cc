// LocalCluster with real processes: what the contract test can't ask of every cluster.

#include "controller/cluster/local/local_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/check.h"
#include "base/file.h"
#include "base/guarded.h"
#include "base/text.h"
#include "tests/integration/local_cluster/processes.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Starts one child in its group, one outside of it, one that ignores SIGTERM, and stays.
constexpr char kFamily[] = "sleep 1000 & setsid sleep 1000 & (trap '' TERM; sleep 1000) & echo ready; wait";

class LocalClusterTest : public ::testing::Test {
 protected:
  LocalClusterTest() : mark_(folder_.path()) { make(); }

  void make() {
    auto made = LocalCluster::make(
        {folder_.path() + "/run", binary_path("bin/paceline-pod"), {{kMarkName, mark_}}}, clock_);
    PL_CHECK(made.ok(), "the local cluster is made");
    cluster_ = *std::move(made);
    cluster_->watch([this](const std::string&) { ++*changes_.lock(); });
  }
  absl::StatusOr<Pod> create(const std::string& name, std::vector<std::string> command,
                             std::map<std::string, std::string> env = {}) {
    PodSpec spec;
    spec.name = name;
    spec.job = "job";
    spec.command = std::move(command);
    spec.env = std::move(env);
    return cluster_->create_pod(spec);
  }
  void shell(const std::string& name, const std::string& script) {
    const auto pod = create(name, {"sh", "-c", script});
    ASSERT_TRUE(pod.ok()) << pod.status();
  }
  std::vector<Pod> list() { return *cluster_->list_pods("default", "job"); }
  template <typename Condition>
  bool wait_until(Condition condition) {
    for (;;) {
      const int seen = *changes_.lock();
      if (condition(list())) return true;
      bool woken = false;
      changes_.lock_when([&](int changes) { return changes > seen; }, kPatience, &woken);
      if (!woken) return condition(list());
    }
  }
  bool wait_for_end() {
    return wait_until([](const auto& pods) { return std::ranges::all_of(pods, &Pod::ended); });
  }
  bool wait_for_log(const std::string& name, const std::string& text) {
    return eventually([&] { return log(name).find(text) != std::string::npos; });
  }
  std::string log(const std::string& name) {
    const auto content = read_file(folder_.path() + "/run/logs/" + name + ".log", 1 << 20);
    return content.ok() ? *content : "";
  }
  bool nothing_is_left() {
    return eventually([&] { return count_marked(mark_) == 0; });
  }

  TemporaryFolder folder_;
  const std::string mark_;
  SystemClock clock_;
  Guarded<int> changes_{0};
  std::unique_ptr<LocalCluster> cluster_;
};

int open_descriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST_F(LocalClusterTest, APodsSurroundings) {
  PodSpec spec;
  spec.name = "a";
  spec.job = "job";
  spec.env = {{"FROM_SPEC", "1"}, {kMarkName, mark_ + "-own"}};
  spec.command = {"sh", "-c",
                  "pwd; echo uid $PACELINE_POD_UID; echo spec $FROM_SPEC; echo mark $PACELINE_TEST_MARK; "
                  "echo home $HOME; "
                  "echo group $(ps -o pgid= $$) self $$; readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; "
                  "echo err >&2"};
  const auto pod = cluster_->create_pod(spec);
  ASSERT_TRUE(pod.ok()) << pod.status();
  ASSERT_TRUE(wait_for_end());
  const std::string text = log("a");
  EXPECT_THAT(text, HasSubstr(folder_.path() + "/run/pods/a\n"));
  EXPECT_THAT(text, HasSubstr("uid " + pod->uid + "\n"));
  EXPECT_THAT(text, HasSubstr("spec 1\n"));
  EXPECT_THAT(text, HasSubstr("mark " + mark_ + "-own\n"));
  EXPECT_THAT(text, HasSubstr("/dev/null\n"));
  EXPECT_THAT(text, HasSubstr("err\n"));
  EXPECT_THAT(text, HasSubstr("\n4\n")) << "0, 1, 2, and ls's own";
  EXPECT_THAT(text, HasSubstr("self " + std::to_string(list()[0].pid))) << "the pid is the command's own";
}

TEST_F(LocalClusterTest, EverySignalIsToldFromEveryExitCode) {
  for (const int signal : {SIGHUP, SIGINT, SIGABRT, SIGKILL, SIGSEGV, SIGTERM}) {
    const std::string name = "s" + std::to_string(signal);
    shell(name, "ulimit -c 0; kill -" + std::to_string(signal) + " $$; sleep 1000");
  }
  for (const int code : {0, 1, 3, 127, 137, 255})
    shell("c" + std::to_string(code), "exit " + std::to_string(code));
  ASSERT_TRUE(wait_for_end());
  for (const Pod& pod : list()) {
    const int number = std::stoi(pod.spec.name.substr(1));
    EXPECT_EQ(pod.signal, pod.spec.name[0] == 's' ? std::optional(number) : std::nullopt) << pod.spec.name;
    EXPECT_EQ(pod.exit_code, pod.spec.name[0] == 'c' ? std::optional(number) : std::nullopt) << pod.spec.name;
  }
}

TEST_F(LocalClusterTest, ASupervisorOfAnotherVersionStartsNothing) {
  ASSERT_TRUE(create("a", {"echo", "ready"}, {{"PACELINE_VERSION", "9.9.9"}}).ok());
  ASSERT_TRUE(wait_for_end());
  EXPECT_EQ(list()[0].reason, "StartError");
  EXPECT_THAT(list()[0].message, HasSubstr("different versions"));
  EXPECT_THAT(log("a"), AllOf(HasSubstr("paceline is version 9.9.9"), Not(HasSubstr("ready"))));
}

TEST_F(LocalClusterTest, DescendantsEndWithTheCommand) {
  // The command goes when the last of its children has told that it stands outside of the group.
  shell("a",
        "mkfifo told; sleep 1000 & setsid sh -c 'echo 1 >told; exec sleep 1000' & "
        "setsid sh -c 'sleep 1000 & echo 2 >told; wait' & "
        "{ read first; read second; } <>told; echo gone; exit 0");
  ASSERT_TRUE(wait_for_end());
  EXPECT_EQ(list()[0].exit_code, 0);
  EXPECT_THAT(log("a"), HasSubstr("gone"));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(LocalClusterTest, DeletionLetsAPodEndInOrder) {
  shell("a", "trap 'echo goodbye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(wait_for_log("a", "ready"));
  ASSERT_TRUE(cluster_->delete_pod("default", "a", "", 20s).ok());
  EXPECT_TRUE(wait_until([](const auto& pods) { return pods.empty(); }));
  EXPECT_THAT(log("a"), HasSubstr("goodbye"));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(LocalClusterTest, ProcessThatIgnoresSigtermIsKilledAfterTheGrace) {
  shell("a", "trap '' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(wait_for_log("a", "ready"));
  ASSERT_TRUE(cluster_->delete_pod("default", "a", "", 30ms).ok());
  EXPECT_TRUE(wait_until([](const auto& pods) { return pods.empty(); }));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(LocalClusterTest, ASecondDeletionShortensTheGrace) {
  shell("a", "trap '' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(wait_for_log("a", "ready"));
  ASSERT_TRUE(cluster_->delete_pod("default", "a", "", 1h).ok());
  EXPECT_TRUE(list().at(0).deleting);
  ASSERT_TRUE(cluster_->delete_pod("default", "a", "", 0s).ok());
  EXPECT_TRUE(wait_until([](const auto& pods) { return pods.empty(); }));
}

TEST_F(LocalClusterTest, AFrozenPodCanBeDeleted) {
  shell("a", "trap 'echo goodbye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(wait_for_log("a", "ready"));
  // The log may be ahead of the list: without a pid, kill() would mean this test itself.
  ASSERT_TRUE(wait_until([](const auto& pods) { return pods[0].pid > 0; }));
  ASSERT_EQ(::kill(static_cast<pid_t>(-list()[0].pid), SIGSTOP), 0);
  ASSERT_TRUE(cluster_->delete_pod("default", "a", "", 20s).ok());
  EXPECT_TRUE(wait_until([](const auto& pods) { return pods.empty(); }));
  EXPECT_THAT(log("a"), HasSubstr("goodbye"));
}

TEST_F(LocalClusterTest, DestructionLeavesNothing) {
  for (int i = 0; i < 8; ++i) shell("p" + std::to_string(i), kFamily);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(wait_for_log("p" + std::to_string(i), "ready"));
  EXPECT_GE(count_marked(mark_), 8 * 4);
  cluster_.reset();
  EXPECT_EQ(count_marked(mark_), 0);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no zombie";
}

// Starts an owner of four pods that run `script`, waits until they are ready, and kills it.
void kill_an_owner(const std::string& script, const std::string& mark, const std::string& root) {
  std::string program = binary_path("tests/local_cluster_owner");
  std::vector<std::string> words = {program, root, mark, "4", "sh", "-c", script};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t owner;
  ASSERT_EQ(::posix_spawn(&owner, program.c_str(), nullptr, nullptr, argv.data(), environ), 0);
  EXPECT_TRUE(eventually([&] {
    for (int i = 0; i < 4; ++i) {
      const auto text = read_file(root + "/logs/pod-" + std::to_string(i) + ".log", 1 << 16);
      if (!text.ok() || text->find("ready") == std::string::npos) return false;
    }
    return true;
  }));
  EXPECT_GE(count_marked(mark), 4 * 4);
  ::kill(owner, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(owner, &status, 0), owner);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(eventually([&] { return count_marked(mark) == 0; })) << count_marked(mark) << " are left";
}

TEST_F(LocalClusterTest, NothingOutlivesAKilledOwner) {
  kill_an_owner(kFamily, mark_ + "-owner", folder_.path() + "/owner");
}

TEST_F(LocalClusterTest, NothingOutlivesAKilledOwnerOfStoppedSupervisors) {
  kill_an_owner(str_cat("kill -STOP $PPID; ", kFamily), mark_ + "-owner", folder_.path() + "/owner");
}

TEST_F(LocalClusterTest, AKilledSupervisorTakesThePodAlong) {
  shell("a", "echo supervisor $PPID; sleep 1000 & sleep 1000");
  ASSERT_TRUE(wait_for_log("a", "\n"));
  const pid_t supervisor = std::stoi(log("a").substr(std::string("supervisor ").size()));
  ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
  ASSERT_TRUE(wait_for_end());
  EXPECT_EQ(list()[0].signal, SIGKILL);
  EXPECT_THAT(list()[0].message, HasSubstr("supervisor"));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(LocalClusterTest, AStoppedSupervisorDoesNotHoldUpADeletion) {
  shell("a", "echo supervisor $PPID; sleep 1000");
  ASSERT_TRUE(wait_for_log("a", "\n"));
  const pid_t supervisor = std::stoi(log("a").substr(std::string("supervisor ").size()));
  ASSERT_EQ(::kill(supervisor, SIGSTOP), 0);
  ASSERT_TRUE(cluster_->delete_pod("default", "a", "", 100ms).ok());
  EXPECT_TRUE(wait_until([](const std::vector<Pod>& pods) { return pods.empty(); }));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(LocalClusterTest, NoDescriptorOrZombieIsLeftAfterManyPods) {
  shell("first", "exit 0");
  ASSERT_TRUE(wait_for_end());
  ASSERT_TRUE(eventually([] { return ::waitpid(-1, nullptr, WNOHANG) == -1; }));
  const int before = open_descriptors();
  std::vector<double> milliseconds;
  for (int i = 0; i < 200; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(create("p" + std::to_string(i), {"true"}).ok());
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    ASSERT_TRUE(i % 20 != 19 || wait_for_end());
  }
  ASSERT_TRUE(wait_for_end());
  // The first pod's last one may have been closed after `before`.
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; }))
      << open_descriptors() << " instead of " << before;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child, dead or alive";
  EXPECT_TRUE(nothing_is_left());
  std::ranges::nth_element(milliseconds, milliseconds.begin() + 100);
  RecordProperty("create_pod_median_ms", std::to_string(milliseconds[100]));
  std::printf("create_pod: median %.2f ms\n", milliseconds[100]);
}

TEST_F(LocalClusterTest, WithoutDescriptorsACreationFailsCleanly) {
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit tight = {static_cast<rlim_t>(open_descriptors()), limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const auto pod = create("a", {"true"});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(pod.status().code(), absl::StatusCode::kResourceExhausted) << pod.status();
  EXPECT_TRUE(list().empty());
  shell("a", "exit 0");
  EXPECT_TRUE(wait_for_end());
}

TEST_F(LocalClusterTest, AFolderThatCannotBeMadeFailsCleanly) {
  std::ofstream(folder_.path() + "/run/pods/a") << "in the way";
  EXPECT_FALSE(create("a", {"true"}).ok());
  EXPECT_TRUE(list().empty());
  EXPECT_TRUE(create("b", {"true"}).ok());
}

TEST_F(LocalClusterTest, LogTailsAndEvents) {
  shell("a", "for i in 1 2 3 4 5; do echo line $i; done; exit 1");
  ASSERT_TRUE(wait_for_end());
  EXPECT_EQ(*cluster_->tail_log(list()[0], 2), "line 4\nline 5\n");
  ASSERT_TRUE(cluster_->record_event({"default", "job", true, "Reason", "Something happened."}).ok());
  EXPECT_THAT(*read_file(folder_.path() + "/run/events.jsonl", 1 << 16),
              HasSubstr("\"message\": \"Something happened.\"}\n"));
}

TEST_F(LocalClusterTest, ALogTailHasNothingOfAnEarlierRun) {
  for (const std::string line : {"old", "new"}) {
    cluster_.reset();
    make();
    shell("a", "echo " + line + "; exit 1");
    ASSERT_TRUE(wait_for_end());
    EXPECT_EQ(*cluster_->tail_log(list()[0], 5), line + "\n");
  }
  EXPECT_EQ(log("a"), "old\nnew\n");
}

TEST_F(LocalClusterTest, AMissingSupervisorIsToldAtOnce) {
  const auto made = LocalCluster::make({folder_.path() + "/other", "/nowhere/paceline-pod", {}}, clock_);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("reinstall"));
  EXPECT_EQ(LocalCluster::make({"relative", "/bin/true", {}}, clock_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace paceline::cluster
