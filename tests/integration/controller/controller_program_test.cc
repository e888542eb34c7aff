// The paceline-controller program against an API server on the loopback.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>

#include "base/guarded.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "controller/cluster/kube/curl_transport.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/paths.h"
#include "tests/support/scripted_http_server.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

using ::testing::UnorderedElementsAre;

constexpr Duration kPatience = std::chrono::seconds(120);
constexpr int kPatienceMs = 120'000;

constexpr char kJob[] = R"({
  "apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "first", "namespace": "default"},
  "spec": {"replicaSpecs": {"worker": {"replicas": 2}}, "training": {
    "model": {"type": "mlp", "hidden": [8], "classes": 2}, "data": {"format": "csv", "train": {"inputs": "train.csv"}},
    "optimizer": {"type": "SGD", "learningRate": 0.1}, "globalBatchSize": 8, "steps": 10}}})";

kube::Method method_of(const std::string& name) {
  if (name == "POST") return kube::Method::kPost;
  if (name == "PUT") return kube::Method::kPut;
  if (name == "PATCH") return kube::Method::kPatch;
  return name == "DELETE" ? kube::Method::kDelete : kube::Method::kGet;
}

class Program {
 public:
  // `error`: its standard error, else ours.
  explicit Program(const std::vector<std::string>& arguments, int error = 2) {
    const std::string path = binary_path("bin/paceline-controller");
    std::vector<char*> argv = {const_cast<char*>(path.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, error, 2);
    EXPECT_EQ(::posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ), 0) << path;
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  void signal(int number) const { ::kill(pid_, number); }
  // Its exit code; -1: it goes on, or a signal has ended it.
  int wait() {
    UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    pollfd polled{fd.get(), POLLIN, 0};
    if (::poll(&polled, 1, kPatienceMs) != 1) return -1;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
};

class ControllerProgramTest : public ::testing::Test {
 protected:
  ControllerProgramTest()
      : http_([this](const ScriptedRequest& request, ScriptedAnswer& answer) { serve(request, answer); }) {}
  ~ControllerProgramTest() override {
    stop_.request_stop();
    http_.stop();
  }
  void serve(const ScriptedRequest& request, ScriptedAnswer& answer) {
    kube::Request asked{.method = method_of(request.method), .path = request.target, .body = request.body};
    if (const auto type = request.headers.find("content-type"); type != request.headers.end()) {
      asked.content_type = type->second;
    }
    if (hangs_ && request.method == "POST" && request.target.find("/pods?") != std::string::npos) {
      ++creations_;
      ++*served_.lock();
      return answer.hold();
    }
    if (request.target.find("watch=true") == std::string::npos &&
        request.target.find("watch=1") == std::string::npos) {
      const auto response = api_.call(asked);
      if (response.ok()) {
        answer.reply(response->status, response->body, "Content-Type: application/json\r\n");
      } else {
        answer.reply(503, "");
      }
      ++*served_.lock();
      return;
    }
    bool begun = false;
    const auto begin = [&] {
      if (std::exchange(begun, true)) return true;
      return answer.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n");
    };
    const auto response = api_.stream(
        asked, [&](std::string_view bytes) { return begin() && answer.send(bytes); }, stop_.get_token());
    if (!begun && response.ok()) answer.reply(response->status, response->body);
    answer.close();
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  // `more`: of the configuration file.
  std::vector<std::string> flags(const std::string& more = "") const {
    return {"--kubeconfig",
            write("kubeconfig", str_cat("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                                        "clusters: [{name: c, cluster: {server: \"",
                                        http_.url(),
                                        "\"}}]\nusers: [{name: u, user: {}}]\n"
                                        "contexts: [{name: c, context: {cluster: c, user: u}}]\n")),
            "--config",
            write("config.yaml",
                  str_cat("apiVersion: config.paceline.dev/v1alpha1\nkind: ControllerConfiguration\n"
                          "coordinator: {listen: \"127.0.0.1:0\"}\nhealth: {address: \"127.0.0.1:0\"}\n"
                          "trainer: {image: \"paceline:test\"}\n",
                          more))};
  }
  template <typename Condition>
  bool wait_for(Condition condition) {
    const SystemClock clock;
    const Deadline deadline = Deadline::after(clock.now(), kPatience);
    while (!deadline.expired(clock.now())) {
      const std::uint64_t before = *served_.lock();
      if (condition()) return true;
      (void)served_.lock_when([&](std::uint64_t n) { return n != before; }, deadline.remaining(clock.now()));
    }
    return false;
  }
  std::vector<std::string> pods() const {
    std::vector<std::string> names;
    for (const auto& pod : api_.all("pods")) names.push_back(pod["metadata"]["name"]);
    return names;
  }

  bool leads() const {
    const auto lease = api_.find("leases", "default", "paceline-controller");
    return lease && (*lease)["spec"]["holderIdentity"] != "";
  }

  TemporaryFolder folder_;
  FakeApiServer api_;
  std::stop_source stop_;
  std::atomic<bool> hangs_{false};  // nobody answers who creates a pod
  std::atomic<int> creations_{0};   // that were asked for since
  Guarded<std::uint64_t> served_{std::uint64_t{0}};
  ScriptedHttpServer http_;
};

TEST_F(ControllerProgramTest, CreatesAJobsPodsAndEndsInOrder) {
  api_.create("trainingjobs", "default", kube::Json::parse(kJob));
  Program program(flags());
  ASSERT_TRUE(wait_for([&] { return pods().size() == 2; }));
  EXPECT_THAT(pods(), UnorderedElementsAre("first-worker-0-0", "first-worker-1-0"));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 0);
  EXPECT_EQ((*api_.find("leases", "default", "paceline-controller"))["spec"]["holderIdentity"], "");
}

// Whoever collects its log lines has gone, or has no room for them.
TEST_F(ControllerProgramTest, GoesOnWhereNobodyTakesItsLogLines) {
  api_.create("trainingjobs", "default", kube::Json::parse(kJob));
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd writer(ends[1]), full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  { const UniqueFd reader(ends[0]); }
  for (const int error : {writer.get(), full.get()}) {
    Program program(flags(), error);
    ASSERT_TRUE(wait_for([&] { return leads(); }));
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait(), 0);
  }
}

TEST_F(ControllerProgramTest, ALeaseThatIsLostEndsItWithACodeOfItsOwn) {
  Program program(
      flags("leaderElection: {leaseDurationSeconds: 6, renewDeadlineSeconds: 4, retryPeriodSeconds: 1}\n"));
  ASSERT_TRUE(wait_for([&] { return leads(); }));
  ASSERT_TRUE(api_.change("leases", "default", "paceline-controller",
                          [](kube::Json& lease) { lease["spec"]["holderIdentity"] = "another"; }));
  EXPECT_EQ(program.wait(), 3);
  EXPECT_EQ((*api_.find("leases", "default", "paceline-controller"))["spec"]["holderIdentity"], "another");
}

TEST_F(ControllerProgramTest, CallsThatHangDoNotHoldUpARenewal) {
  constexpr int kJobs = kube::kMaxCallsInFlight + 20;
  hangs_ = true;
  kube::Json job = kube::Json::parse(kJob);
  for (int i = 0; i < kJobs; ++i) {
    job["metadata"]["name"] = str_cat("job-", i);
    api_.create("trainingjobs", "default", job);
  }
  const Program program(
      flags("workers: 200\nleaderElection: {leaseDurationSeconds: 6, renewDeadlineSeconds: 4, "
            "retryPeriodSeconds: 1}\n"));
  ASSERT_TRUE(wait_for([&] { return creations_ >= kube::kMaxCallsInFlight; })) << "no more are sent at once";
  const auto renewals = [&] { return api_.requests("PATCH /apis/coordination.k8s.io/"); };
  const int before = renewals();
  EXPECT_TRUE(wait_for([&] { return renewals() >= before + 2; }));
}

TEST_F(ControllerProgramTest, ASecondSignalEndsItInTheMiddleOfItsWork) {
  hangs_ = true;
  api_.create("trainingjobs", "default", kube::Json::parse(kJob));
  const std::string log = write("log", "");
  const UniqueFd error(::open(log.c_str(), O_WRONLY | O_CLOEXEC));
  Program program(flags(), error.get());
  ASSERT_TRUE(wait_for([&] { return creations_ > 0; }));
  program.signal(SIGTERM);
  program.signal(SIGINT);  // a second SIGTERM might come while the first one waits, and be none
  EXPECT_EQ(program.wait(), 4);
  const std::string said((std::istreambuf_iterator<char>(std::ifstream(log).rdbuf())), {});
  EXPECT_THAT(said, ::testing::HasSubstr("asked to end a second time"));
  EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("jobs are still being worked on"))) << "it waited";
}

TEST_F(ControllerProgramTest, AsksAnotherOneWhetherItIsReady) {
  ScriptedHttpServer ready([](const ScriptedRequest& request, ScriptedAnswer& answer) {
    answer.reply(request.target == "/readyz" ? 200 : 404, "ok\n");
  });
  EXPECT_EQ(Program({"--ask-ready", ready.url()}).wait(), 0);
  ready.stop();
  EXPECT_EQ(Program({"--ask-ready", "no address"}).wait(), 1);
}

TEST_F(ControllerProgramTest, SaysWhatIsWrongAndEnds) {
  EXPECT_EQ(Program({"--workers", "0"}).wait(), 2);
  EXPECT_EQ(Program({"--config", folder_.path() + "/missing"}).wait(), 2);
  EXPECT_EQ(Program({"--config", write("bad.yaml", "kind: Other\n")}).wait(), 2);
  std::FILE* const said = std::tmpfile();
  ASSERT_NE(said, nullptr);
  EXPECT_EQ(
      Program({"--config", write("red.yaml", "kind: \"\\e[31m\"\nred\x1b[31m: 1\n")}, ::fileno(said)).wait(),
      2);
  EXPECT_EQ(Program({"--config", folder_.path() + "/\x1b[31m"}, ::fileno(said)).wait(), 2);
  std::string text(4096, ' ');
  text.resize(
      static_cast<std::size_t>(std::max<ssize_t>(::pread(::fileno(said), text.data(), text.size(), 0), 0)));
  std::fclose(said);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_NE(text.find("\\x1b[31m"), std::string::npos) << text;
  EXPECT_EQ(Program({"--kubeconfig", folder_.path() + "/missing"}).wait(), 1);
  EXPECT_EQ(Program({"--help"}).wait(), 0);
}

TEST_F(ControllerProgramTest, ATakenPortEndsItAtOnce) {
  const UniqueFd taken(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::vector<std::string> arguments = flags();
  arguments[3] = write("taken.yaml", str_cat("apiVersion: config.paceline.dev/v1alpha1\n"
                                             "kind: ControllerConfiguration\n"
                                             "health: {address: \"127.0.0.1:0\"}\n"
                                             "coordinator: {listen: \"127.0.0.1:",
                                             ntohs(address.sin_port), "\"}\n"));
  EXPECT_EQ(Program(arguments).wait(), 1);
}

}  // namespace
}  // namespace paceline
