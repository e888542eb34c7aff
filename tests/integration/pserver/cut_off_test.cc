// A worker loses its network for data, and nothing else: its control connection, a UNIX socket here, goes on.
// Members are real processes in two network namespaces of the test's own, with a cable between them. Needs
// root.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/guarded.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "controller/api/parse.h"
#include "controller/api/training_spec.h"
#include "controller/coordinator/server.h"
#include "controller/diagnosis/fault_text.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

using api::Fault;
using api::FaultKind;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
// Connections end 11 s after a network is cut, and the coordinator may wait 6 s more; the rest is for a busy
// machine.
constexpr Duration kLong = std::chrono::seconds(90);

// The steps of examples/NAME, for ever.
v1::TrainingSpec endless(const std::string& name) {
  const std::string folder = source_path("examples");
  const auto text = read_file(str_cat(folder, "/", name), 1 << 20);
  PL_CHECK(text.ok(), "the example is there");
  const auto parsed = api::parse_training_job(*text, name);
  PL_CHECK(parsed.job.has_value(), "the example is right");
  auto spec = api::make_training_spec(*parsed.job, {folder, "", "", false});
  PL_CHECK(spec.ok(), "the example is right");
  spec->clear_target();
  spec->set_epochs(0);
  spec->set_steps(50'000'000);
  spec->mutable_checkpoint()->Clear();
  spec->mutable_checkpoint()->set_keep(2);
  return *std::move(spec);
}

// A process in a namespace; killed at the end if it still runs.
class Process {
 public:
  Process(const UniqueFd& network, std::vector<std::string> arguments,
          std::vector<std::string> environment = {}) {
    environment.push_back("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    for (const char* name : {"ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
      if (const char* value = std::getenv(name)) environment.push_back(str_cat(name, "=", value));
    }
    const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::setns(network.get(), CLONE_NEWNET) == 0) ::execvpe(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  }
  pid_t pid_ = -1;
};

// Two namespaces, which end with their descriptors and processes, and the cable with them.
class Network {
 public:
  static constexpr char kHere[] = "10.83.0.1", kThere[] = "10.83.0.2";

  // Why there can be none; empty: it is up.
  std::string set_up() {
    here_ = make_namespace();
    there_ = make_namespace();
    if (!here_.valid() || !there_.valid()) return "network namespaces need root";
    const std::string other = str_cat("/proc/", ::getpid(), "/fd/", there_.get());
    const bool made = ip(here_, "link set lo up") && ip(there_, "link set lo up") &&
                      ip(here_, str_cat("link add data type veth peer name data netns ", other)) &&
                      ip(here_, str_cat("address add ", kHere, "/24 dev data")) &&
                      ip(there_, str_cat("address add ", kThere, "/24 dev data")) &&
                      ip(here_, "link set data up") && ip(there_, "link set data up");
    return made ? "" : "a cable between network namespaces needs iproute2 and veth";
  }
  // Pulls the cable at the far end.
  bool cut() { return ip(there_, "link set data down"); }
  const UniqueFd& here() const { return here_; }
  const UniqueFd& there() const { return there_; }

 private:
  static UniqueFd make_namespace() {
    UniqueFd made;
    std::jthread([&made] {  // which takes its own namespace with it when it ends
      if (::unshare(CLONE_NEWNET) == 0) made.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    })
        .join();
    return made;
  }
  static bool ip(const UniqueFd& network, const std::string& words) {
    std::vector<std::string> arguments = {"ip"};
    for (std::size_t begin = 0; begin < words.size();) {
      const std::size_t end = std::min(words.find(' ', begin), words.size());
      arguments.push_back(words.substr(begin, end - begin));
      begin = end + 1;
    }
    return Process(network, std::move(arguments)).wait() == 0;
  }

  UniqueFd here_, there_;
};

// What the coordinator decides, and how far the job is.
class Witness final : public coordinator::RunObserver {
 public:
  struct Seen {
    Step step = 0;
    std::optional<Fault> verdict, lost;
  };
  void on_steps(std::span<const coordinator::StepRecord> steps) override {
    if (!steps.empty()) seen_.lock()->step = steps.back().step;
  }
  void on_verdict(const Fault& verdict) override { seen_.lock()->verdict = verdict; }
  void on_lost(const Fault& lost) override { seen_.lock()->lost = lost; }

  template <typename Condition>
  Seen wait_until(Condition condition) {
    return *seen_.lock_when(condition, kLong);
  }

 private:
  Guarded<Seen> seen_;
};

// A job of a chief, three workers and two servers, of which the last worker is at the far end of the cable.
class CutOffTest : public ::testing::Test {
 protected:
  static constexpr int kWorkers = 3;

  void SetUp() override {
    if (const std::string missing = network_.set_up(); !missing.empty()) GTEST_SKIP() << missing;
  }

  void start(const v1::TrainingSpec& spec) {
    auto server =
        coordinator::Server::start({.listen = str_cat("unix:", folder_.path(), "/control")}, clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    coordinator::JobConfig config;
    config.core.job = "default/digits";
    config.core.training = spec;
    config.core.link_key = std::string(32, 'k');
    config.core.roles = {{Role::kChief, 1}, {Role::kWorker, kWorkers}, {Role::kServer, 2}};
    config.core.heartbeat_timeout = std::chrono::seconds(5);
    config.core.most_silence = std::chrono::seconds(30);
    config.core.on_member_lost = coordinator::loss_policy(spec, {});
    config.token = kToken;
    config.observer = &witness_;
    auto job = server_->add_job(std::move(config));
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *std::move(job);
    add_member("chief", 0);
    for (int w = 0; w < kWorkers; ++w) add_member("worker", w);
    for (int s = 0; s < 2; ++s) add_member("ps", s);
    ASSERT_GE(witness_.wait_until([](const Witness::Seen& seen) { return seen.step >= 20; }).step, 20);
  }

  void add_member(const std::string& role, int index) {
    const bool far = role == "worker" && index == kWorkers - 1;
    members_.push_back(std::make_unique<Process>(
        far ? network_.there() : network_.here(),
        std::vector<std::string>{binary_path("bin/paceline-worker")},
        std::vector<std::string>{
            str_cat("PACELINE_COORDINATOR=", server_->address()), "PACELINE_JOB=default/digits",
            str_cat("PACELINE_ROLE=", role), str_cat("PACELINE_INDEX=", index),
            str_cat("PACELINE_POD=digits-", role, "-", index), str_cat("PACELINE_POD_UID=uid-", role, index),
            str_cat("PACELINE_TOKEN=", kToken),
            str_cat("PACELINE_ADDRESS=", far ? Network::kThere : Network::kHere), "PACELINE_THREADS=1",
            "PACELINE_LOG_LEVEL=warning"}));
  }

  void TearDown() override {
    members_.clear();
    job_.reset();
    if (server_ != nullptr) server_->shutdown();
  }

  Network network_;
  const TemporaryFolder folder_;
  SystemClock clock_;
  Witness witness_;
  std::unique_ptr<coordinator::Server> server_;
  std::shared_ptr<coordinator::Job> job_;
  std::vector<std::unique_ptr<Process>> members_;
};

TEST_F(CutOffTest, AsynchronouslyTheOthersGoOnWithoutTheWorker) {
  start(endless("digits-ps-async.yaml"));
  ASSERT_TRUE(network_.cut());
  const Witness::Seen seen =
      witness_.wait_until([](const Witness::Seen& s) { return s.lost.has_value() || s.verdict.has_value(); });
  ASSERT_FALSE(seen.verdict.has_value()) << diagnosis::message_of(*seen.verdict);
  ASSERT_TRUE(seen.lost.has_value()) << "nobody was missed";
  EXPECT_EQ(seen.lost->role, Role::kWorker);
  EXPECT_EQ(seen.lost->index, kWorkers - 1);
  EXPECT_EQ(seen.lost->kind, FaultKind::kUnreachable) << diagnosis::message_of(*seen.lost);
  EXPECT_EQ(members_[kWorkers]->wait(), 3) << "it hears that it is out";
  const Step next = seen.step + 100;
  EXPECT_GE(witness_.wait_until([next](const Witness::Seen& s) { return s.step >= next; }).step, next);
}

TEST_F(CutOffTest, CutOffWorkerIsNamedAndNoServerInTheSynchronousMode) {
  start(endless("digits-ps-sync.yaml"));
  ASSERT_TRUE(network_.cut());
  const Witness::Seen seen =
      witness_.wait_until([](const Witness::Seen& s) { return s.verdict.has_value(); });
  ASSERT_TRUE(seen.verdict.has_value()) << "nobody was missed";
  EXPECT_EQ(seen.verdict->role, Role::kWorker) << diagnosis::message_of(*seen.verdict);
  EXPECT_EQ(seen.verdict->index, kWorkers - 1);
  EXPECT_EQ(seen.verdict->kind, FaultKind::kUnreachable) << diagnosis::message_of(*seen.verdict);
  EXPECT_EQ(seen.verdict->evidence.front().kind, api::ObservationKind::kPeerReports);
}

}  // namespace
}  // namespace paceline
