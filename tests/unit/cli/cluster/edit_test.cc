// suspend, resume, scale, checkpoint, replace, events, explain, top, and watching.

#include "cli/cluster/changes.h"
#include "tests/unit/cli/cluster/cluster_fixture.h"

namespace paceline::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ClusterTest, SuspendAndResume) {
  add_job(job_object("digits", "Running"));
  ASSERT_TRUE(suspend_jobs(call_, {"digits"}, true).ok());
  EXPECT_EQ(stored().at("spec").at("runPolicy").at("suspend"), true);
  EXPECT_EQ(
      server_.requests(
          "PATCH /apis/paceline.dev/v1alpha1/namespaces/team-a/trainingjobs/digits?fieldManager=paceline"),
      1);
  ASSERT_TRUE(suspend_jobs(call_, {"digits"}, true).ok());
  ASSERT_TRUE(suspend_jobs(call_, {"digits"}, false).ok());
  EXPECT_EQ(stored().at("spec").at("runPolicy").at("suspend"), false);
  ASSERT_TRUE(suspend_jobs(call_, {"digits"}, false).ok());
  EXPECT_EQ(server_.requests("PATCH"), 2);
  EXPECT_EQ(out_.str(),
            "trainingjob.paceline.dev/digits suspended\n"
            "trainingjob.paceline.dev/digits is suspended already\n"
            "trainingjob.paceline.dev/digits resumed\n"
            "trainingjob.paceline.dev/digits is not suspended\n");
}

TEST_F(ClusterTest, AJobThatHasEndedIsNotSuspended) {
  add_job(job_object("done", "Succeeded"));
  add_job(job_object("digits", "Running"));
  const absl::Status status = suspend_jobs(call_, {"done", "digits"}, true);
  EXPECT_EQ(status.message(), "job team-a/done has ended (Succeeded): there is nothing to suspend");
  EXPECT_EQ(out_.str(), "trainingjob.paceline.dev/digits suspended\n");
}

TEST_F(ClusterTest, AJobThatIsBeingDeletedIsNotEdited) {
  kube::Json going = job_object("digits", "Running");
  going["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z";
  add_job(going);
  EXPECT_EQ(suspend_jobs(call_, {"digits"}, true).message(),
            "job team-a/digits is being deleted: there is nothing to suspend");
  EXPECT_EQ(scale_job(call_, "digits", {{Role::kWorker, 5}}).message(),
            "job team-a/digits is being deleted: there is nothing to scale");
  EXPECT_EQ(server_.requests("PATCH"), 0);
}

TEST_F(ClusterTest, ScaleKeepsToMinAndMax) {
  add_job(job_object("digits", "Running"));
  EXPECT_EQ(printed(scale_job(call_, "digits", {{Role::kWorker, 5}})),
            "trainingjob.paceline.dev/digits scaled: worker from 3 to 5\n");
  EXPECT_EQ(stored().at("spec").at("replicaSpecs").at("worker").at("replicas"), 5);
  absl::Status status = scale_job(call_, "digits", {{Role::kWorker, 6}});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("2 to 5"));
  status = scale_job(call_, "digits", {{Role::kWorker, 1}, {Role::kChief, 2}});
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("worker=1"), HasSubstr("2 to 5"), HasSubstr("chief=2")));
  status = scale_job(call_, "digits", {{Role::kEvaluator, 1}});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("chief, worker"));
  EXPECT_EQ(server_.requests("PATCH"), 1);
  EXPECT_THAT(printed(scale_job(call_, "digits", {{Role::kWorker, 5}})), HasSubstr("has that many already"));
}

TEST_F(ClusterTest, ScaleLooksAgainWhenSomebodyElseWasFaster) {
  add_job(job_object("digits", "Running"));
  int conflicts = 0;
  server_.set_faults([&](const kube::Request& request) {
    if (request.method == kube::Method::kPatch && conflicts++ == 0)
      server_.change("trainingjobs", "team-a", "digits",
                     [](kube::Json& job) { job["metadata"]["labels"]["x"] = "y"; });
    return FakeApiServer::Fault{};
  });
  ASSERT_TRUE(scale_job(call_, "digits", {{Role::kWorker, 4}}).ok());
  EXPECT_EQ(server_.requests("PATCH"), 2);
  EXPECT_EQ(stored().at("metadata").at("labels").at("x"), "y");
}

// A controller that answers every request so.
class RequestTest : public ClusterTest {
 protected:
  RequestTest() { add_job(job_object("digits", "Running")); }
  void answer_with(const std::string& outcome, const std::string& message) {
    on_pause_ = [this, outcome, message] {
      server_.change("trainingjobs", "team-a", "digits", [&](kube::Json& job) {
        for (const char* kind : {"checkpoint", "replace"}) {
          const std::string& text =
              kube::text_at(job, {"metadata", "annotations", std::string("paceline.dev/") + kind});
          if (!text.empty())
            job["status"]["requests"][kind] = {{"text", text}, {"outcome", outcome}, {"message", message}};
        }
      });
    };
  }
};

TEST_F(RequestTest, CheckpointIsWaitedFor) {
  answer_with("Done", "the checkpoint of step 121 is written");
  EXPECT_EQ(printed(checkpoint_job(call_, "digits")),
            "trainingjob.paceline.dev/digits: the checkpoint of step 121 is written\n");
  EXPECT_EQ(server_.requests("PATCH"), 1);
  EXPECT_EQ(printed(checkpoint_job(call_, "digits")),
            "trainingjob.paceline.dev/digits: the checkpoint of step 121 is written\n")
      << "another time is another request";
  EXPECT_EQ(server_.requests("PATCH"), 2);
}

TEST_F(RequestTest, ReplacementNamesItsMember) {
  answer_with("Done", "pod digits-worker-2-1 is to take over from pod digits-worker-2-0");
  EXPECT_THAT(printed(replace_member(call_, "digits", "worker/2")), HasSubstr("digits-worker-2-1"));
  const kube::Json job = stored();
  EXPECT_EQ(kube::text_at(job, {"metadata", "annotations", "paceline.dev/replace"}).rfind("worker-2@", 0),
            0U);
  for (const char* other : {"worker", "boss-1", ""}) {
    const absl::Status refused = replace_member(call_, "digits", other);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << other;
  }
  EXPECT_TRUE(absl::IsNotFound(replace_member(call_, "digits", "worker-7"))) << "there is none";
  EXPECT_TRUE(absl::IsFailedPrecondition(replace_member(call_, "digits", "chief-0")))
      << "restartPolicy Never";
  EXPECT_EQ(server_.requests("PATCH"), 1);
}

TEST_F(RequestTest, RefusalAndFailureAreErrors) {
  for (const char* outcome : {"Refused", "Failed"}) {
    answer_with(outcome, "no space left");
    EXPECT_TRUE(absl::IsFailedPrecondition(checkpoint_job(call_, "digits"))) << outcome;
  }
}

TEST_F(RequestTest, RequestThatIsNotAnsweredIsGivenUp) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(checkpoint_job(call_, "digits")));
  answer_with("UnderWay", "members save after the step under way");
  EXPECT_TRUE(absl::IsDeadlineExceeded(checkpoint_job(call_, "digits")))
      << "it has looked, and never does it";
}

TEST_F(RequestTest, RequestThatAnotherOneReplacedIsSaidToBeSo) {
  on_pause_ = [this] {
    server_.change("trainingjobs", "team-a", "digits", [](kube::Json& job) {
      job["metadata"]["annotations"]["paceline.dev/replace"] = "worker-1@by somebody else";
    });
  };
  EXPECT_TRUE(absl::IsAborted(replace_member(call_, "digits", "worker-2")));
}

TEST_F(RequestTest, JobThatDoesNotTrainIsNotAsked) {
  for (const char* phase : {"Starting", "Suspended", "Succeeded", "Failed"}) {
    set_phase(phase);
    EXPECT_TRUE(absl::IsFailedPrecondition(checkpoint_job(call_, "digits"))) << phase;
    EXPECT_TRUE(absl::IsFailedPrecondition(replace_member(call_, "digits", "worker-0"))) << phase;
  }
  EXPECT_EQ(server_.requests("PATCH"), 0);
}

TEST_F(RequestTest, JobOfAnotherControllerIsNotAsked) {
  server_.change("trainingjobs", "team-a", "digits", [](kube::Json& job) {
    job["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(checkpoint_job(call_, "digits")));
  EXPECT_TRUE(absl::IsFailedPrecondition(replace_member(call_, "digits", "worker-0")));
  EXPECT_EQ(server_.requests("PATCH"), 0);
}

TEST(ScalingTest, RoleAndNumber) {
  EXPECT_EQ(parse_scaling("worker=4")->replicas, 4);
  EXPECT_EQ(parse_scaling("Chief=0")->role, Role::kChief);
  for (const char* wrong :
       {"", "worker", "worker=", "worker=-1", "worker=4x", "boss=1", "=4", "worker=99999999999999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(parse_scaling(wrong).status())) << wrong;
  }
  EXPECT_EQ(
      parse_scaling("worker=04").status().message(),
      "\"worker=04\" says no number of a role: \"04\" is no whole number from 0 to 2147483647: it begins "
      "with a zero; allowed: ROLE=N, such as worker=4");
}

TEST(ScalingTest, ARoleIsGivenOnce) {
  EXPECT_EQ(parse_scalings({"worker=4", "chief=1"})->size(), 2u);
  for (const char* again : {"worker=3", "Worker=4"})
    EXPECT_TRUE(absl::IsInvalidArgument(parse_scalings({"worker=4", again}).status())) << again;
}

// ---- events

TEST_F(ClusterTest, EventsOfAJobAndItsPodsTheNewestLast) {
  add_job(job_object());
  add_event("b", "Pod", "digits-worker-1-0", "Started", "12:04:00");
  add_event("a", "TrainingJob", "digits", "Created", "12:00:00");
  add_event("c", "Pod", "nginx", "Foreign", "12:04:00");
  add_event("d", "Pod", "digits-worker-0-0", "OfAnEarlierJob", "11:59:00");
  EXPECT_EQ(printed(list_events(call_, {.name = "digits"})),
            "AGE  TYPE    REASON   OBJECT                 MESSAGE\n"
            "5m   Normal  Created  tj/digits              Created of digits\n"
            "60s  Normal  Started  pod/digits-worker-1-0  Started of digits-worker-1-0\n");
  EXPECT_TRUE(absl::IsNotFound(list_events(call_, {.name = "other"})));
}

TEST_F(ClusterTest, TheNewestEventsOfAJobAreKeptAndOfAllJobsAll) {
  const auto time = [](std::size_t i) {
    return kube::format_micro_time(*kube::parse_time("2026-01-31T12:00:00Z") + std::chrono::seconds(i));
  };
  constexpr std::size_t kAll = jobs::kMostEvents + 700;
  for (std::size_t i = 0; i < kAll; ++i)
    server_.create("events", "team-a",
                   event_object(str_cat("e-", i), "Pod", "digits-worker-0-0", "Started", time(i)));
  add_event("a", "TrainingJob", "digits", "Created", "12:00:00");
  const auto events = client_.events("team-a", "digits");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->events.size(), jobs::kMostEvents + 1) << "those of pods push out none of the job's own";
  EXPECT_EQ(events->events[0].reason, "Created");
  EXPECT_EQ(events->events[1].key, str_cat("team-a/e-", kAll - jobs::kMostEvents));
  EXPECT_EQ(events->events.back().key, str_cat("team-a/e-", kAll - 1));
  EXPECT_EQ(client_.events("team-a", "")->events.size(), kAll + 1);
}

TEST_F(ClusterTest, EventsAreListedAnewWhereTheirPagesAreTooOld) {
  for (int i = 0; i < 700; ++i)
    add_event(str_cat("e-", i), "Pod", "digits-worker-0-0", "Started", "12:00:00");
  bool expired = false;
  server_.set_faults([&](const kube::Request& request) {
    FakeApiServer::Fault fault;
    if (request.path.find("continue=") != std::string::npos && !std::exchange(expired, true))
      fault.answer =
          kube::Response{410, refusal(410, "Expired", "too old").dump(), std::nullopt, "application/json"};
    return fault;
  });
  EXPECT_EQ(client_.events("team-a", "digits")->events.size(), 700U);
  EXPECT_TRUE(expired);
}

// A watch that gives what a test wrote down: each stream its bytes and its end.
class WatchScript final : public kube::Transport {
 public:
  struct Stream {
    std::string bytes;
    absl::Status end = absl::OkStatus();
    int status = 200;
  };
  WatchScript(FakeApiServer& server, std::stop_source& stop) : server_(server), stop_(stop) {}
  std::vector<Stream> streams;
  std::vector<std::string> asked;
  std::function<void(std::size_t stream)> before = [](std::size_t) {};

  absl::StatusOr<kube::Response> call(const kube::Request& request) override { return server_.call(request); }
  absl::StatusOr<kube::Response> stream(const kube::Request& request,
                                        const std::function<bool(std::string_view)>& on_bytes,
                                        std::stop_token stop) override {
    if (request.path.find("watch=true") == std::string::npos) return server_.stream(request, on_bytes, stop);
    before(asked.size());
    asked.push_back(request.path);
    if (asked.size() > streams.size()) {
      stop_.request_stop();
      return absl::CancelledError("stopped");
    }
    const Stream& now = streams[asked.size() - 1];
    if (now.status == 200 && !now.bytes.empty()) on_bytes(now.bytes);
    if (!now.end.ok()) return now.end;
    return kube::Response{now.status, now.status == 200 ? "" : now.bytes, std::nullopt, "application/json"};
  }

 private:
  FakeApiServer& server_;
  std::stop_source& stop_;
};

class WatchTest : public ClusterTest {
 protected:
  WatchScript script_{server_, stop_};
  kube::ApiClient watching_{script_, clock_, 1, stop_.get_token(), pause_};
  JobClient watching_client_{watching_, "https://10.0.0.1:6443", stop_.get_token()};
  Call watching_call_ = call_by(watching_client_, pause_);

  static std::string line(const char* type, const kube::Json& object) {
    return kube::Json{{"type", type}, {"object", object}}.dump() + "\n";
  }
};

TEST_F(WatchTest, PrintsWhatChangesOnce) {
  add_job(job_object("digits", "Starting"));
  kube::Json running = stored();
  running["metadata"]["resourceVersion"] = "2001";
  running["status"]["phase"] = "Running";
  const kube::Json bookmark = {{"metadata", {{"resourceVersion", "2005"}}}};
  script_.streams = {{line("MODIFIED", running) + line("MODIFIED", running) + line("BOOKMARK", bookmark)},
                     {"", absl::UnavailableError("reset")},
                     {"", absl::UnavailableError("reset")}};
  EXPECT_TRUE(absl::IsCancelled(get_jobs(watching_call_, {.watch = true})));
  EXPECT_THAT(out_.str(), HasSubstr("digits  Starting"));
  EXPECT_EQ(std::ranges::count(out_.str(), '\n'), 3) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr("digits  Running "));
  ASSERT_EQ(script_.asked.size(), 4u);
  EXPECT_THAT(script_.asked[0], HasSubstr("resourceVersion=1001"));
  EXPECT_THAT(script_.asked[1], HasSubstr("resourceVersion=2005"));
  EXPECT_EQ(std::ranges::count(err_.str(), '\n'), 1) << err_.str();  // said once
  EXPECT_EQ(clock_.now(), TimePoint(3s));                            // 1 s, then 2 s
}

TEST_F(WatchTest, AVersionThatIsForgottenIsListedAnew) {
  add_job(job_object("digits", "Starting"));
  script_.streams = {{line("ERROR", refusal(410, "Expired", "too old"))}};
  script_.before = [&](std::size_t stream) {
    if (stream == 0) set_phase("Running");
  };
  EXPECT_TRUE(absl::IsCancelled(get_jobs(watching_call_, {.watch = true})));
  EXPECT_THAT(out_.str(), HasSubstr("digits  Running "));
  EXPECT_THAT(script_.asked.at(1), HasSubstr("resourceVersion=1002"));
}

TEST_F(WatchTest, WatchesThatEndAtOnceAreAskedForMoreAndMoreSeldom) {
  add_job(job_object("digits", "Starting"));
  script_.streams = {{""}, {""}, {""}};
  EXPECT_TRUE(absl::IsCancelled(get_jobs(watching_call_, {.watch = true})));
  EXPECT_EQ(script_.asked.size(), 4u);
  EXPECT_EQ(clock_.now(), TimePoint(7s));  // 1 s, 2 s, 4 s
  EXPECT_EQ(err_.str(), "");
}

TEST_F(WatchTest, ALostRightEndsIt) {
  add_job(job_object("digits", "Starting"));
  script_.streams = {{.bytes = refusal(403, "Forbidden", "no").dump(), .status = 403}};
  EXPECT_TRUE(absl::IsPermissionDenied(get_jobs(watching_call_, {.watch = true})));
}

TEST_F(WatchTest, EventsAsTheyCome) {
  add_job(job_object());
  kube::Json event = event_object("a", "TrainingJob", "digits", "Created", "2026-01-31T12:04:00Z");
  event["metadata"]["namespace"] = "team-a";
  event["metadata"]["resourceVersion"] = "3000";
  kube::Json foreign = event_object("b", "Pod", "nginx", "Foreign", "2026-01-31T12:04:00Z");
  foreign["metadata"]["resourceVersion"] = "3001";
  script_.streams = {{line("ADDED", event) + line("ADDED", foreign) + line("ADDED", event)}};
  EXPECT_TRUE(absl::IsCancelled(list_events(watching_call_, {.watch = true})));
  EXPECT_EQ(out_.str(),
            "AGE  TYPE    REASON   OBJECT     MESSAGE\n60s  Normal  Created  tj/digits  Created of digits\n");
}

// ---- top, explain

TEST_F(ClusterTest, TopShowsAJobUntilItEnds) {
  kube::Json job = job_object("digits", "Running");
  job["status"]["members"] =
      kube::Json::array({{{"role", "worker"}, {"index", 0}, {"rank", 0}, {"pod", "digits-worker-0-1"}}});
  add_job(job);
  add_pod(pod_object("digits", "worker", 0, 1));
  on_pause_ = [&] {
    server_.change("trainingjobs", "team-a", "digits", [](kube::Json& job) {
      job["status"]["phase"] = "Succeeded";
      job["status"]["message"] = "all is done";
    });
  };
  EXPECT_THAT(printed(top_job(call_, {.name = "digits"})),
              AllOf(HasSubstr("digits  Running  view 2, 1 member"), HasSubstr("step 120/200"),
                    ::testing::ContainsRegex("MEMBER +NODE +PHASE"), HasSubstr("digits  Succeeded"),
                    HasSubstr("\nall is done\n")));
  EXPECT_EQ(clock_.now(), TimePoint(2s));
}

TEST_F(ClusterTest, TopGoesOnHoweverLongTheSilenceAndSaysSinceWhen) {
  add_job(job_object("digits", "Running"));
  constexpr int kMissed = 50;
  int looks = 0;
  server_.set_faults([&](const kube::Request&) {
    FakeApiServer::Fault fault;
    if (looks > 1 && looks <= 1 + kMissed) fault.broken = absl::UnavailableError("down");
    return fault;
  });
  std::vector<Duration> waits;
  TimePoint before = clock_.now();
  on_pause_ = [&] {
    waits.push_back(clock_.now() - std::exchange(before, clock_.now()));
    if (++looks == 2 + kMissed) set_phase("Succeeded");
  };
  const std::string text = printed(top_job(call_, {.name = "digits"}));
  EXPECT_THAT(std::vector(waits.begin(), waits.begin() + 8),
              ::testing::ElementsAre(2s, 2s, 2s, 4s, 8s, 16s, 30s, 30s))
      << "more and more seldom";
  ASSERT_EQ(waits.size(), 2u + kMissed);
  EXPECT_THAT(text, HasSubstr("no answer since 2026-01-31T12:05:02Z: can't get job team-a/digits"));
  const std::size_t ended = text.find("digits  Succeeded");
  ASSERT_NE(ended, std::string::npos);
  EXPECT_EQ(text.find("no answer", ended), std::string::npos);
  looks = 2;
  EXPECT_TRUE(absl::IsUnavailable(top_job(call_, {.name = "digits"})));  // none at the beginning
}

TEST_F(ClusterTest, ExplainGoesByTheControllersLimits) {
  kube::Json job = job_object("digits", "Running");
  job["spec"]["runPolicy"]["suspend"] = true;
  add_job(job);
  add_pod(pod_object("digits", "worker", 0, 1));
  EXPECT_THAT(explained("digits"), HasSubstr("SIGKILL after 30.0 s"));
}

TEST_F(ClusterTest, ExplainSaysWhatThePlannerWouldDo) {
  add_job(job_object("new"));
  EXPECT_THAT(explained("new"),
              AllOf(HasSubstr("TrainingJob team-a/new: not seen by a controller yet, 0 pods\n"),
                    HasSubstr("create pod new-chief-0-0"), HasSubstr("no controller has looked at it yet")));
  EXPECT_EQ(server_.requests("POST") + server_.requests("PATCH"), 0);
}

TEST_F(ClusterTest, ExplainOfARunningJobHasNothingToDo) {
  kube::Json job = job_object("digits", "Running");
  job["status"]["restarts"] = {{"size", 4}};
  job["status"]["conditions"] = {
      {{"type", "Running"}, {"status", "True"}, {"lastTransitionTime", "2026-01-31T12:01:00Z"}}};
  add_job(job);
  add_pod(pod_object("digits", "chief", 0, 0));
  for (int i = 0; i < 3; ++i) add_pod(pod_object("digits", "worker", i, 0));
  EXPECT_THAT(explained("digits"),
              AllOf(HasSubstr("Running (MembersTrain), 4 pods\n  why: view 2 with 4 members trains\n"),
                    HasSubstr("  nothing to do\n")));
}

TEST_F(ClusterTest, ExplainKnowsWhoWasLost) {
  kube::Json job = job_object("digits", "Running");
  job["spec"]["strategy"] = {{"type", "ParameterServer"}, {"synchronization", "Asynchronous"}};
  job["spec"]["replicaSpecs"]["ps"] = kube::Json::object();
  job["spec"]["replicaSpecs"]["worker"] = {{"replicas", 1}};
  job["status"]["restarts"] = {{"size", 3}};
  job["status"]["members"] = {
      {{"role", "worker"}, {"index", 0}, {"pod", "digits-worker-0-0"}, {"phase", "Lost"}}};
  add_job(job);
  add_pod(pod_object("digits", "chief", 0, 0));
  add_pod(pod_object("digits", "ps", 0, 0));
  add_pod(pod_object("digits", "worker", 0, 0, "Failed"));
  EXPECT_THAT(explained("digits"), AllOf(HasSubstr("  nothing to do\n"), Not(HasSubstr("\n  worker-0"))))
      << "the others go on without it, and it can't be lost again";
}

TEST_F(ClusterTest, ExplainOfASuspendedJobDeletesItsPods) {
  kube::Json job = job_object("digits", "Running");
  job["spec"]["runPolicy"]["suspend"] = true;
  job["status"]["restarts"] = {{"size", 4}};
  add_job(job);
  add_pod(pod_object("digits", "worker", 0, 0));
  EXPECT_THAT(explained("digits"),
              AllOf(HasSubstr("delete pod digits-worker-0-0"), HasSubstr("status: Suspended")));
}

}  // namespace
}  // namespace paceline::cli
