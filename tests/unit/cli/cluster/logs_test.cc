#include <map>
#include <mutex>

#include "tests/unit/cli/cluster/cluster_fixture.h"

namespace paceline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Streams of logs as a test wrote them down, by pod: each request gets the next, the last for ever.
class LogScript final : public kube::Transport {
 public:
  struct Stream {
    std::string bytes;
    absl::Status end = absl::OkStatus();
    int status = 200;
    std::function<void()> then = {};
  };
  explicit LogScript(FakeApiServer& server) : server_(server) {}
  std::map<std::string, std::vector<Stream>> pods;

  std::vector<std::string> asked(const std::string& pod) {
    const std::lock_guard lock(mutex_);
    return asked_[pod];
  }
  absl::StatusOr<kube::Response> call(const kube::Request& request) override { return server_.call(request); }
  absl::StatusOr<kube::Response> stream(const kube::Request& request,
                                        const std::function<bool(std::string_view)>& on_bytes,
                                        std::stop_token stop) override {
    const std::size_t log = request.path.find("/log");
    if (log == std::string::npos) return server_.stream(request, on_bytes, stop);
    const std::string pod =
        request.path.substr(request.path.rfind('/', log - 1) + 1, log - request.path.rfind('/', log - 1) - 1);
    std::size_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = asked_[pod].size();
      asked_[pod].push_back(request.path);
    }
    const std::vector<Stream>& streams = pods.at(pod);
    const Stream& now = streams[std::min(number, streams.size() - 1)];
    if (now.status == 200 && !now.bytes.empty()) on_bytes(now.bytes);
    if (now.then) now.then();
    if (!now.end.ok()) return now.end;
    return kube::Response{now.status, now.status == 200 ? "" : now.bytes, std::nullopt, "text/plain"};
  }

 private:
  FakeApiServer& server_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> asked_;
};

class LogsTest : public ClusterTest {
 protected:
  LogScript script_{server_};
  // The threads of a command that follows wait too: their pauses don't move the clock.
  kube::Pause short_pause_ = [this](Duration, const std::stop_token& stop) {
    std::this_thread::yield();
    return !stop.stop_requested() && !stop_.stop_requested();
  };
  kube::ApiClient reading_{script_, clock_, 1, stop_.get_token(), short_pause_};
  JobClient reading_client_{reading_, "https://10.0.0.1:6443", stop_.get_token(), short_pause_};
  Call reading_call_ = call_by(reading_client_, short_pause_);

  // An empty `member` means all of them.
  absl::Status logs(const std::string& member = "", LogRequest request = {}) {
    return job_logs(reading_call_, {.name = "digits", .member = member, .log = std::move(request)});
  }
  absl::Status follow(const std::string& member = "") { return logs(member, {.follow = true}); }
  // Adds a job that runs, and of it the first attempt of worker 0.
  void add_worker(const std::string& phase = "Running") {
    add_job(job_object("digits", "Running"));
    add_pod(pod_object("digits", "worker", 0, 0, phase));
  }

  void end_pod(const std::string& pod) {
    server_.change("pods", "team-a", pod, [](kube::Json& json) { json["status"]["phase"] = "Succeeded"; });
  }
};

TEST_F(LogsTest, AllMembersWithTheirNamesInFront) {
  add_job(job_object("digits", "Succeeded"));
  add_pod(pod_object("digits", "worker", 0, 0));
  add_pod(pod_object("digits", "chief", 0, 0));
  add_pod(pod_object("digits", "chief", 0, 1));
  script_.pods = {{"digits-worker-0-0", {{"a\nb\n"}}}, {"digits-chief-0-1", {{"c\n"}}}};
  EXPECT_EQ(printed(logs()), "chief-0 | c\nworker-0 | a\nworker-0 | b\n");
  EXPECT_THAT(script_.asked("digits-worker-0-0").at(0), HasSubstr("container=trainer"));
  EXPECT_THAT(script_.asked("digits-worker-0-0").at(0), Not(HasSubstr("follow")));
}

// A pod whose init container failed: its trainer has never run.
kube::Json without_start(kube::Json pod) {
  const kube::Json fetch = {{"name", "fetch"},
                            {"state", {{"terminated", {{"exitCode", 3}, {"reason", "Error"}}}}}};
  pod["status"] = {{"phase", "Failed"}, {"initContainerStatuses", kube::Json::array({fetch})}};
  return pod;
}

TEST_F(LogsTest, TheLogOfAFailedInitContainerIsShown) {
  add_job(job_object("digits", "Failed"));
  add_pod(without_start(pod_object("digits", "worker", 0, 0)));
  script_.pods = {{"digits-worker-0-0", {{"no route\n"}}}};
  EXPECT_EQ(printed(logs("worker/0")), "no route\n");
  EXPECT_THAT(script_.asked("digits-worker-0-0").at(0), HasSubstr("container=fetch"));
  ASSERT_TRUE(logs("worker/0", {.container = "trainer"}).ok());
  EXPECT_THAT(script_.asked("digits-worker-0-0").at(1), HasSubstr("container=trainer"));
}

TEST_F(LogsTest, FollowingTellsOfAnInitContainerThatFails) {
  add_worker("Pending");
  const auto fails = [this] {
    server_.change("pods", "team-a", "digits-worker-0-0",
                   [](kube::Json& json) { json = without_start(json); });
  };
  script_.pods = {
      {"digits-worker-0-0",
       {{.bytes = "container trainer is waiting to start", .status = 400, .then = fails},
        {.bytes = "2026-01-31T12:00:00.5Z no route\n", .then = [this] { set_phase("Failed"); }}}}};
  EXPECT_EQ(printed(follow("worker/0")), "no route\n");
  EXPECT_THAT(script_.asked("digits-worker-0-0").at(1), HasSubstr("container=fetch"));
}

TEST_F(LogsTest, OneMemberWithoutAndWithOptions) {
  add_job(job_object("digits", "Running"));
  add_pod(pod_object("digits", "worker", 1, 0));
  add_pod(pod_object("digits", "worker", 1, 1));
  script_.pods = {{"digits-worker-1-1", {{"a\n"}}}, {"digits-worker-1-0", {{"old\n"}}}};
  const LogRequest request{.container = "metrics", .tail = 5, .since = std::chrono::seconds(90)};
  EXPECT_EQ(printed(logs("worker/1", request)), "a\n");
  for (const char* part : {"container=metrics", "tailLines=5", "sinceSeconds=90"}) {
    EXPECT_THAT(script_.asked("digits-worker-1-1").at(0), HasSubstr(part));
  }
  const LogsOptions previous{.name = "digits", .member = "worker-1", .previous = true};
  EXPECT_EQ(printed(job_logs(reading_call_, previous)), "old\n");
  EXPECT_EQ(printed(logs("digits-worker-1-0")), "old\n");
}

TEST_F(LogsTest, UnknownMembersAndAttemptsAreErrors) {
  add_job(job_object("digits", "Running"));
  EXPECT_EQ(logs().message(), "\"digits\" has no logs");
  add_pod(pod_object("digits", "worker", 0, 0));
  EXPECT_EQ(logs("worker/7").message(), "\"digits\" has no member \"worker/7\"; it has: worker-0");
  EXPECT_TRUE(absl::IsNotFound(job_logs(reading_call_, {.name = "digits", .previous = true})));
  EXPECT_TRUE(absl::IsInvalidArgument(logs("boss")));
}

TEST_F(LogsTest, AMemberWhosePodIsGoneIsNoStranger) {
  kube::Json job = job_object("digits", "Succeeded");
  job["status"]["members"] = {{{"role", "worker"}, {"index", 0}, {"phase", "Succeeded"}},
                              {{"role", "evaluator"}, {"index", 0}, {"phase", "Succeeded"}}};
  add_job(job);
  EXPECT_EQ(logs().message(),
            "\"digits\" has no log any more of worker-0, evaluator-0: a log goes with its pod");
  add_pod(pod_object("digits", "worker", 0, 0));
  for (const char* member : {"evaluator", "evaluator-0"}) {
    EXPECT_EQ(logs(member).message(),
              "\"digits\" has no log any more of evaluator-0: a log goes with its pod; it has: worker-0");
  }
  EXPECT_EQ(logs("ps-0").message(), "\"digits\" has no member \"ps-0\"; it has: worker-0");
}

TEST_F(LogsTest, AContainerThatHasNotBegunIsAnErrorOfItsOwn) {
  add_job(job_object("digits", "Running"));
  add_pod(pod_object("digits", "chief", 0, 0, "Pending"));
  add_pod(pod_object("digits", "worker", 0, 0));
  const std::string waiting =
      refusal(400, "BadRequest", "container \"trainer\" is waiting to start: ContainerCreating").dump();
  script_.pods = {{"digits-worker-0-0", {{"a\n"}}},
                  {"digits-chief-0-0", {{.bytes = waiting, .status = 400}}}};
  EXPECT_FALSE(logs().ok());
  EXPECT_EQ(out_.str(), "worker-0 | a\n");
  EXPECT_THAT(err_.str(), HasSubstr("is waiting to start: ContainerCreating"));
}

TEST_F(LogsTest, FollowingReadsOnAfterABreak) {
  add_worker();
  script_.pods["digits-worker-0-0"] = {
      {.bytes = refusal(400, "BadRequest", "ContainerCreating").dump(), .status = 400},
      {.bytes = "2026-01-31T12:00:00.1Z a\n2026-01-31T12:00:00.2Z b\n2026-01-31T12:00:00.3Z c",
       .end = absl::UnavailableError("reset")},
      {.bytes = "2026-01-31T12:00:00.1Z a\n2026-01-31T12:00:00.2Z b\n2026-01-31T12:00:00.3Z "
                "cut\n2026-01-31T12:00:01Z end\n",
       .then = [this] {
         end_pod("digits-worker-0-0");
         set_phase("Succeeded");
       }}};
  EXPECT_EQ(printed(logs("", {.tail = 10, .follow = true})),
            "worker-0 | a\nworker-0 | b\nworker-0 | cut\nworker-0 | end\n");
  const auto asked = script_.asked("digits-worker-0-0");
  EXPECT_THAT(asked.at(1), HasSubstr("tailLines=10"));
  EXPECT_THAT(asked.at(1), HasSubstr("follow=true"));
  EXPECT_THAT(asked.at(2), HasSubstr("sinceTime=2026-01-31T12%3A00%3A00Z"));
  EXPECT_THAT(asked.at(2), Not(HasSubstr("tailLines")));
  EXPECT_EQ(std::ranges::count(err_.str(), '\n'), 1) << err_.str();
}

TEST_F(LogsTest, FollowingGoesOnWithTheNextAttempt) {
  add_worker();
  script_.pods["digits-worker-0-0"] = {{.bytes = "2026-01-31T12:00:00Z first\n", .then = [this] {
                                          server_.erase("pods", "team-a", "digits-worker-0-0");
                                          add_pod(pod_object("digits", "worker", 0, 1));
                                        }}};
  script_.pods["digits-worker-0-1"] = {{.bytes = "2026-01-31T12:01:00Z second\n", .then = [this] {
                                          end_pod("digits-worker-0-1");
                                          set_phase("Failed");
                                        }}};
  EXPECT_EQ(printed(follow("worker/0")), "first\nsecond\n");
}

TEST_F(LogsTest, FollowingEndsWhenAsked) {
  add_worker();
  script_.pods["digits-worker-0-0"] = {{.bytes = "2026-01-31T12:00:00Z a\n",
                                        .end = absl::CancelledError("stopped"),
                                        .then = [this] { stop_.request_stop(); }}};
  EXPECT_TRUE(absl::IsCancelled(follow()));
  EXPECT_EQ(out_.str(), "worker-0 | a\n");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(LogsTest, FollowingWithoutTheRightSaysSo) {
  add_worker();
  script_.pods["digits-worker-0-0"] = {{.bytes = refusal(403, "Forbidden", "no logs for you").dump(),
                                        .status = 403,
                                        .then = [this] { set_phase("Succeeded"); }}};
  EXPECT_TRUE(absl::IsPermissionDenied(follow()));
  EXPECT_THAT(err_.str(),
              HasSubstr("you may not read the log of pod team-a/digits-worker-0-0: no logs for you"));
  EXPECT_THAT(err_.str(), HasSubstr("can-i get pods/log -n team-a"));
}

TEST_F(LogsTest, TooManyToFollow) {
  add_job(job_object("digits", "Running"));
  for (int i = 0; i <= static_cast<int>(kMaxFollowed); ++i) add_pod(pod_object("digits", "worker", i, 0));
  EXPECT_TRUE(absl::IsResourceExhausted(follow()));
}

}  // namespace
}  // namespace paceline::cli
