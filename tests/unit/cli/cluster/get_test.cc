#include "cli/cluster/describe_text.h"
#include "cli/cluster/job_view.h"
#include "controller/plan/elastic.h"
#include "tests/unit/cli/cluster/cluster_fixture.h"

namespace paceline::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(ClusterTest, ListsTheJobsOfANamespace) {
  add_job(job_object("digits", "Running"));
  add_job(job_object("new"));
  add_job(job_object("elsewhere"), "team-b");
  EXPECT_EQ(printed(get_jobs(call_, {})),
            "NAME    PHASE    READY     STEP    LOSS  ACCURACY  SAMPLES/S  RESTARTS  AGE\n"
            "digits  Running    3/4  120/200  0.2500   87.50 %      6,400         1   5m\n"
            "new     Pending    0/4        -       -         -          -         0   5m\n");
}

TEST_F(ClusterTest, ListsAllNamespacesAndMoreColumns) {
  kube::Json job = job_object("digits", "Running");
  job["spec"]["runPolicy"]["schedulingPolicy"]["queue"] = "night";
  job["status"]["lastCheckpoint"] = "/paceline/checkpoints/step-000001200";
  add_job(job);
  add_job(job_object("elsewhere"), "team-b");
  call_.all_namespaces = true;
  EXPECT_THAT(
      printed(get_jobs(call_, {.output = "wide"})),
      AllOf(HasSubstr("NAMESPACE  NAME       PHASE"), HasSubstr("AGE  REASON        QUEUE  CHECKPOINT\n"),
            ContainsRegex("MembersTrain  night  +1,200\n"), HasSubstr("team-b     elsewhere")));
}

TEST_F(ClusterTest, ManyJobsComeInPages) {
  for (int i = 0; i < 1100; ++i) add_job(job_object(str_cat("job-", i)));
  EXPECT_EQ(std::ranges::count(printed(get_jobs(call_, {.output = "name"})), '\n'), 1100);
  EXPECT_EQ(server_.requests("GET /apis/paceline.dev"), 3);
}

TEST_F(ClusterTest, PrintsObjectsForPrograms) {
  add_job(job_object());
  const auto one = kube::Json::parse(printed(get_jobs(call_, {.name = "digits", .output = "json"})));
  EXPECT_EQ(one["kind"], "TrainingJob");
  EXPECT_EQ(one["spec"]["replicaSpecs"]["worker"]["replicas"], 3);
  EXPECT_FALSE(one["metadata"].contains("managedFields"));
  const auto all = kube::Json::parse(printed(get_jobs(call_, {.output = "json"})));
  EXPECT_EQ(all["items"][0]["kind"], "TrainingJob");
  EXPECT_THAT(printed(get_jobs(call_, {.name = "digits", .output = "yaml"})),
              AllOf(HasSubstr("kind: TrainingJob\n"), HasSubstr("    worker:\n      maxReplicas: 5\n")));
  EXPECT_EQ(printed(get_jobs(call_, {.output = "name"})), "trainingjob.paceline.dev/digits\n");
}

TEST_F(ClusterTest, AnEmptyNamespaceIsNoError) {
  EXPECT_EQ(printed(get_jobs(call_, {})), "");
  EXPECT_EQ(err_.str(), "No jobs in namespace team-a. Start one with `paceline apply -f job.yaml`.\n");
  EXPECT_TRUE(kube::Json::parse(printed(get_jobs(call_, {.output = "json"})))["items"].empty());
}

TEST_F(ClusterTest, AJobThatIsNotThereNamesTheOthers) {
  add_job(job_object("digits"));
  answer(
      "/trainingjobs/other", 404,
      refusal(404, "NotFound", "trainingjobs.paceline.dev \"other\" not found", {{"kind", "trainingjobs"}}));
  const absl::Status status = get_jobs(call_, {.name = "other"});
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "there is no job \"other\" in namespace team-a; it has: digits");
}

TEST_F(ClusterTest, RefusalsSayWhatToDo) {
  const auto message = [&] { return std::string(get_jobs(call_, {}).message()); };
  answer_text("/trainingjobs", 404, "404 page not found\n");
  EXPECT_TRUE(absl::IsNotFound(get_jobs(call_, {})));
  EXPECT_THAT(message(), AllOf(HasSubstr("Paceline is not installed there"), HasSubstr("context dev")));

  answer("/trainingjobs", 403,
         refusal(403, "Forbidden", "trainingjobs.paceline.dev is forbidden: User \"eve\" cannot list"));
  EXPECT_TRUE(absl::IsPermissionDenied(get_jobs(call_, {})));
  EXPECT_THAT(
      message(),
      AllOf(
          HasSubstr("you may not list the jobs of namespace team-a: trainingjobs.paceline.dev is forbidden"),
          HasSubstr("kubectl auth can-i list trainingjobs.paceline.dev -n team-a")));

  answer("/trainingjobs", 401, refusal(401, "Unauthorized", "Unauthorized"));
  EXPECT_THAT(message(), HasSubstr("log in again"));

  server_.set_faults([](const kube::Request&) {
    return FakeApiServer::Fault{.broken = absl::UnavailableError("connection refused")};
  });
  EXPECT_THAT(message(), HasSubstr("no answer from https://10.0.0.1:6443"));
}

TEST_F(ClusterTest, AJobThatWaitsForMembersSaysSo) {
  kube::Json job = job_object("digits", "Running");
  job["status"]["reason"] = plan::kTooFewMembers;
  const std::string why = "too few";
  job["status"]["message"] = why;
  job["status"]["restarts"] = {{"size", 4}};
  add_job(job);
  EXPECT_THAT(printed(get_jobs(call_, {})), ContainsRegex("digits +Running, waits "));
  EXPECT_THAT(described("digits"), HasSubstr(why));
  EXPECT_THAT(explained("digits"), AllOf(HasSubstr("why: " + why), HasSubstr("Running: " + why)));
}

TEST_F(ClusterTest, AJobWhoseSavesFailSaysSo) {
  kube::Json job = job_object("digits", "Running");
  const auto told = [&](const char* fails) {
    job["status"]["conditions"] = kube::Json::array({{{"type", api::kCheckpointFailed}, {"status", fails}}});
    return job_rows({read_job(job)}, false, false, WallTime()).at(0).at(1);
  };
  EXPECT_EQ(told("True"), "Running, saves fail");
  EXPECT_EQ(told("False"), "Running");
}

TEST_F(ClusterTest, ARunWhoseStatusIsOldSaysSo) {
  JobView run;
  run.run.emplace().phase = "Running";
  run.run->reason = api::kStatusOld;
  EXPECT_EQ(job_rows({run}, false, false, WallTime()).at(0).at(1), "Running, stale");
}

TEST_F(ClusterTest, AFailedJobThatHasNoCheckpointSaysSo) {
  kube::Json job = job_object("digits", "Failed");
  const auto hints = [&job] {
    Described d;
    d.job = read_job(job);
    d.spec.emplace().spec.training.emplace();
    return hints_for(d).size();
  };
  EXPECT_EQ(hints(), 1U);
  job["status"]["lastCheckpoint"] = "/checkpoints/step-000000100";
  EXPECT_EQ(hints(), 0U);
}

TEST_F(ClusterTest, DescribesEverythingAboutAJob) {
  kube::Json job = job_object("digits", "Running");
  job["status"]["conditions"] = {{{"type", "Running"},
                                  {"status", "True"},
                                  {"reason", "MembersTrain"},
                                  {"message", "all train"},
                                  {"lastTransitionTime", "2026-01-31T12:01:00Z"}}};
  job["status"]["members"] = {{{"role", "worker"},
                               {"index", 1},
                               {"rank", 2},
                               {"pod", "digits-worker-1-1"},
                               {"phase", "Training"},
                               {"step", 120},
                               {"computeMs", 1.5},
                               {"waitMs", 0.5},
                               {"stepMs", 2}}};
  job["status"]["restarts"]["byCause"] = {{{"role", "worker"}, {"cause", "Killed"}, {"count", 1}},
                                          {{"role", "worker"}, {"cause", "Resized"}, {"count", 2}}};
  job["status"]["restarts"]["replacements"] = {
      {{"role", "worker"}, {"index", 2}, {"count", 2}, {"notBefore", "2026-01-31T12:05:08Z"}},
      {{"role", "worker"}, {"index", 1}, {"count", 1}, {"notBefore", "2026-01-31T12:04:00Z"}}};
  add_job(job);
  add_pod(pod_object("digits", "worker", 1, 0, "Failed"));
  add_pod(pod_object("digits", "worker", 1, 1));
  kube::Json pending = pod_object("digits", "worker", 2, 1, "Pending");
  pending["status"]["conditions"] = {{{"type", "PodScheduled"},
                                      {"status", "False"},
                                      {"reason", "Unschedulable"},
                                      {"message", "0/2 nodes are available"}}};
  pending["spec"].erase("nodeName");
  add_pod(pending);
  add_pod(pod_object("digits-2", "worker", 0, 0));
  add_event("b", "Pod", "digits-worker-1-1", "Started", "12:04:00");
  add_event("a", "TrainingJob", "digits", "Running", "12:03:00");
  add_event("c", "Pod", "digits-2-worker-0-0", "Foreign", "12:04:00");
  add_event("d", "Pod", "digits-worker-0-0", "Foreign", "11:59:00");

  const std::string text = described("digits");
  EXPECT_THAT(text, HasSubstr("digits  Running\n"));
  EXPECT_THAT(text, HasSubstr("test accuracy  87.50 %"));
  EXPECT_THAT(
      text, HasSubstr("replicas  chief=1, restartPolicy Never, worker=3 (2 to 5), restartPolicy OnFailure"));
  EXPECT_THAT(text, ContainsRegex(
                        "restarts +1 \\(backoffLimit [0-9]+, [0-9]+ left\\)\n +1 because of worker: Killed\n"
                        " +next try +worker-2 in 8.0 s\n +resized +2 times\n"));
  EXPECT_THAT(text, HasSubstr("Running  True    4m     MembersTrain  all train"));
  EXPECT_THAT(text, HasSubstr("worker-1  digits-worker-1-0  node-1  Failed"));
  EXPECT_THAT(text, HasSubstr("exit code 1"));
  EXPECT_THAT(text, HasSubstr("Unschedulable: 0/2 nodes are available"));
  EXPECT_THAT(text, HasSubstr("pod digits-worker-2-1, Unschedulable: no node has room for it"));
  EXPECT_THAT(text,
              ContainsRegex("MEMBER +NODE +PHASE +STEP +INPUT +COMPUTE +WAIT +TRANSFER +UPDATE +TOTAL ms\n"));
  EXPECT_THAT(text, ContainsRegex("worker-1 +node-1 +Training +120 +- +1.50 +0.50 +- +- +2.00\n"));
  EXPECT_LT(text.find("Running of digits"), text.find("Started of digits-worker-1-1"));
  EXPECT_THAT(text, Not(HasSubstr("Foreign")));
  EXPECT_THAT(text, Not(HasSubstr("/logs")));
}

// A chief and three workers, of whose gradients three make a step.
kube::Json job_that_drops(const std::string& phase) {
  kube::Json job = job_object("digits", phase);
  job["spec"]["strategy"] = {{"type", "ParameterServer"}, {"parameterServer", {{"gradientsPerStep", 3}}}};
  job["spec"]["replicaSpecs"]["ps"] = kube::Json::object();
  job["spec"]["replicaSpecs"]["worker"] = {{"replicas", 3}};
  const auto worker = [](int index, kube::Json histogram) {
    return kube::Json{
        {"role", "worker"},
        {"index", index},
        {"rank", index + 1},
        {"pod", str_cat("digits-worker-", index, "-1")},
        {"phase", "Training"},
        {"step", 120},
        {"staleness",
         {{"applied", 100}, {"dropped", 20}, {"mean", 0.5}, {"max", 2}, {"histogram", histogram}}}};
  };
  job["status"]["members"] = {worker(0, {60, 30, 10}), worker(1, {50, 50})};
  return job;
}

TEST_F(ClusterTest, DescribesWhatBecomesOfGradients) {
  add_job(job_that_drops("Running"));
  add_pod(pod_object("digits", "worker", 0, 1));
  add_pod(pod_object("digits", "worker", 1, 1));
  const std::string text = described("digits");
  EXPECT_THAT(
      text, HasSubstr("gradients      each step counts the first 3 of 4 gradients: 48 of 64 samples (75 %); "
                      "40 of 240 gradients (17 %) came too late and were dropped\n"));
  EXPECT_THAT(text,
              HasSubstr("staleness      0: 55 %, 1: 40 %, 2: 5 % of 200 gradients; mean 0.50, most 2\n"));
  EXPECT_THAT(text, HasSubstr("steps          120 of 200 (5,760 samples, ")) << "those that count";
  EXPECT_THAT(text, ContainsRegex("length +200 steps, 48 of 64 samples \\(75 %\\) each step\n"));
  EXPECT_THAT(text, HasSubstr("worker-1          100       20       0.50    2"));
  EXPECT_THAT(top_of("digits"), HasSubstr("\nstaleness of 200 gradients:  0: 55 %  1: 40 %  2: 5 %\n"));
}

TEST_F(ClusterTest, WhatBecameOfGradientsIsKnownWhenThePodsAreGone) {
  add_job(job_that_drops("Succeeded"));
  EXPECT_THAT(described("digits"), AllOf(HasSubstr("40 of 240 gradients (17 %) came too late"),
                                         HasSubstr("0: 55 %, 1: 40 %, 2: 5 % of 200 gradients")));
  add_pod(pod_object("digits", "worker", 0, 1, "Succeeded"));
  add_pod(pod_object("digits", "worker", 1, 2, "Succeeded"));
  EXPECT_THAT(described("digits"), HasSubstr("0: 60 %, 1: 30 %, 2: 10 % of 100 gradients"))
      << "of another pod nobody told";
}

TEST_F(ClusterTest, HowTheMembersGpusAreIsShown) {
  kube::Json job = job_object("digits", "Running");
  job["status"]["members"] = {{{"role", "worker"},
                               {"index", 0},
                               {"rank", 0},
                               {"pod", "digits-worker-0-1"},
                               {"phase", "Training"},
                               {"gpu",
                                {{"name", "NVIDIA H200"},
                                 {"computeMs", 41.25},
                                 {"updateMs", 1.5},
                                 {"utilization", 0.93},
                                 {"memoryClockMhz", 3201},
                                 {"memoryUtilization", 0.41},
                                 {"powerWatts", 612},
                                 {"powerLimitWatts", 700},
                                 {"slowdowns", {"power cap"}},
                                 {"uncorrectedEccErrors", 1},
                                 {"pcieReplays", 3},
                                 {"xids", 2},
                                 {"lastXid", 79}}}}};
  const auto now = ContainsRegex(
      "worker-0 +- +NVIDIA H200 +- +41.25 +1.50 +93 % +41 % +- +- +3,201 +- +612 "
      "of 700 +power cap +2 Xids \\(79\\), "
      "1 uncorrected ECC, 3 PCIe replays\n");
  add_job(job);
  add_pod(pod_object("digits", "worker", 0, 1));
  EXPECT_THAT(described("digits"), now);
  EXPECT_THAT(top_of("digits"), now);

  job["metadata"]["name"] = "failed";
  job["status"]["phase"] = "Failed";
  add_job(job);
  EXPECT_THAT(
      described("failed"),
      ContainsRegex(
          "\nGPUs:\n  GPU OF .*\n  worker-0 +- +NVIDIA H200 +- +- +- +- +- +- +- +- +- +- +- +2 Xids "))
      << "its pod is gone: what was of that moment is not shown";
}

// A garbage collector, or a user, has removed the pods of members that had ended, and of one that had not.
TEST_F(ClusterTest, MembersWhosePodsAreGoneAreStillListed) {
  kube::Json job = job_object("digits", "Running");
  const auto member = [](const char* role, int index, const char* phase, int attempt = 1) {
    return kube::Json{
        {"role", role},   {"index", index}, {"pod", str_cat("digits-", role, "-", index, "-", attempt)},
        {"phase", phase}, {"step", 120},    {"host", "node-2"}};
  };
  job["status"]["members"] = {member("chief", 0, "training"),   member("worker", 0, "Finished"),
                              member("worker", 1, "Lost"),      member("worker", 2, "training"),
                              member("worker", 3, "Succeeded"), member("worker", 4, "training", 0)};
  add_job(job);
  add_pod(pod_object("digits", "chief", 0, 1));
  add_pod(pod_object("digits", "worker", 3, 0, "Failed"));  // of the attempt before
  add_pod(pod_object("digits", "worker", 4, 1));            // of which the status does not tell yet
  for (const std::string& text : {described("digits"), top_of("digits")}) {
    EXPECT_THAT(text, ContainsRegex("chief-0 +node-1 +training +120"));
    EXPECT_THAT(text, ContainsRegex("worker-0 +node-2 +Finished, pod gone +120"));
    EXPECT_THAT(text, ContainsRegex("worker-1 +node-2 +Lost, pod gone +120"));
    EXPECT_THAT(text, ContainsRegex("worker-2 +node-2 +pod gone +120")) << "it trains no more";
    EXPECT_THAT(text, ContainsRegex("worker-3 +node-2 +Succeeded, pod gone +120"));
    EXPECT_THAT(text, ContainsRegex("worker-4 +node-1 +Running +0"));
  }
}

TEST_F(ClusterTest, WhatServersHaveCountedIsShownWhenTheyHaveEnded) {
  kube::Json job = job_that_drops("Succeeded");
  job["status"]["members"].push_back(
      {{"role", "ps"},
       {"pod", "digits-ps-0-1"},
       {"phase", "Succeeded"},
       {"server", {{"load", 0.5}, {"queue", 3}, {"updates", 400}, {"rows", 12345}, {"rowBytes", 1 << 20}}}});
  add_job(job);
  const auto counted = HasSubstr("ps-0     0 %      0   0.0      400  12,345  1.0 MiB");
  EXPECT_THAT(top_of("digits"), counted) << "its pod is gone";
  add_pod(pod_object("digits", "ps", 0, 1, "Succeeded"));
  const std::string text = top_of("digits");
  EXPECT_THAT(text, counted) << "no rates";
  EXPECT_THAT(text, Not(HasSubstr("\n\n\n"))) << "one empty line above the result";
}

TEST_F(ClusterTest, DescribeWithoutANameTakesTheNewestThatGoesOn) {
  add_job(job_object("a-old", "Succeeded"));
  add_job(job_object("b-running", "Running"));
  add_job(job_object("c-done", "Failed"));
  EXPECT_THAT(described(""), HasSubstr("b-running  Running\n"));
}

TEST_F(ClusterTest, DescribeNamesTheCheckAndPartialStepsThatTheSpecAsksFor) {
  kube::Json job = job_object("digits", "Running");
  job["spec"]["preflight"] = kube::Json::object();
  job["spec"]["strategy"]["allReduce"]["maxDropRate"] = 0.05;
  job["spec"]["training"]["microBatchSize"] = 4;
  add_job(job);
  EXPECT_THAT(described("digits"), AllOf(ContainsRegex("\n  preflight +members are tested"),
                                         ContainsRegex("\n  partial steps +a member that is out of time")));
}

TEST_F(ClusterTest, DescribeHintsAtWhatIsWrong) {
  add_job(job_object("unseen"));
  EXPECT_THAT(described("unseen"), HasSubstr("no controller has looked at it yet"));
  kube::Json broken = job_object("broken", "Failed");
  broken["spec"]["training"]["steps"] = 0;
  broken["spec"]["runPolicy"]["suspend"] = true;
  add_job(broken);
  EXPECT_THAT(described("broken"), AllOf(HasSubstr("spec.training.steps: "),
                                         HasSubstr("mend it by kubectl edit tj/broken -n team-a")));
  kube::Json suspended = job_object("asleep", "Suspended");
  suspended["spec"]["runPolicy"]["suspend"] = true;
  add_job(suspended);
  EXPECT_THAT(described("asleep"), HasSubstr("paceline resume asleep -n team-a"));
}

TEST_F(ClusterTest, DescribeShowsTheFaultAndPointsToItsLog) {
  kube::Json job = job_object("digits", "Failed");
  job["status"]["message"] = "worker-1 failed at step 0: no such file";
  job["status"]["fault"] = {{"kind", "Failed"},
                            {"role", "worker"},
                            {"index", 1},
                            {"cause", "Exited"},
                            {"pod", "digits-worker-1-1"},
                            {"host", "node-2"},
                            {"exitCode", 1},
                            {"evidence", {{{"kind", "Said"}, {"detail", "no such file"}}}},
                            {"victims", {{{"kind", "LostLink"}, {"detail", "worker-1"}, {"role", "chief"}}}}};
  add_job(job);
  add_pod(pod_object("digits", "chief", 0, 0, "Failed"));
  add_pod(pod_object("digits", "chief", 0, 1, "Failed"));
  kube::Json failed = pod_object("digits", "worker", 1, 1, "Failed");
  std::string lines = "it " + std::string(60, 'x') + " " + std::string(60, 'y') + " ends\nand more\n";
  failed["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = lines;
  failed["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] = "Error";
  add_pod(failed);
  const std::string fault =
      "\nFault:\n"
      "  member    worker-1, pod digits-worker-1-1 on node-2\n"
      "  kind      Failed\n"
      "  cause     Exited\n"
      "  exit      exited with code 1\n"
      "  evidence  no such file\n"
      "  victim    chief-0 lost its link to worker-1\n";
  EXPECT_THAT(described("digits"),
              AllOf(HasSubstr(fault), HasSubstr("its log: paceline logs digits worker/1 -n team-a"),
                    HasSubstr("Error: it " + std::string(60, 'x') + " ..., exit code 1"),
                    Not(HasSubstr("and more"))));
  set_phase("Running");
  EXPECT_THAT(described("digits"), HasSubstr("Newest fault:"));
}

TEST(StragglerLinesTest, MembersThatFailedTheCheckStandApartFromStragglers) {
  JobView job;
  const auto replaced = [](const char* pod, api::StragglerCause cause) {
    return api::StragglerReplacement{.pod = pod, .successor = "next", .cause = cause};
  };
  job.status.straggler_replacements = {replaced("unfit", api::StragglerCause::kUnfit),
                                       replaced("slow", api::StragglerCause::kUnknown)};
  EXPECT_THAT(straggler_lines(job, {}),
              ElementsAre("Replaced, since they failed the check before the first step:",
                          HasSubstr("pod unfit"), "Replaced stragglers:", HasSubstr("pod slow")));
}

TEST(FaultLinesTest, ARunWhoseOwnerWasLostHasFailedByNoFault) {
  const auto told = [](api::Phase phase, const char* reason) {
    Described d;
    d.job.run.emplace();
    d.job.status.phase = phase;
    d.job.status.reason = reason;
    d.job.status.fault = api::Fault{.role = Role::kWorker, .index = 1};
    return std::pair(fault_lines(d.job).front(), hints_for(d).size());
  };
  const auto restarted = told(api::Phase::kRunning, "MembersTrain");
  EXPECT_EQ(told(api::Phase::kFailed, kOwnerLost), restarted);
  EXPECT_NE(told(api::Phase::kFailed, "MemberKilled").first, restarted.first);
  EXPECT_GT(told(api::Phase::kFailed, "MemberKilled").second, restarted.second) << "where its log is";
}

TEST(HintsTest, PodThatDoesNotStartIsToldOnce) {
  Described d;
  d.job.status.phase = api::Phase::kStarting;
  d.job.status.reason = "Unschedulable";
  d.job.status.conditions = {{"Running", false, "Unschedulable", ""}};
  d.spec.emplace();
  d.job.seen = true;
  const std::vector<std::string> without_pods = hints_for(d);
  ASSERT_THAT(without_pods, SizeIs(1));
  kube::SlimPod pod;
  pod.key = "team-a/digits-worker-0-0";
  pod.reason = "Unschedulable";
  d.pods = {pod};
  EXPECT_THAT(hints_for(d), ElementsAre("pod digits-worker-0-0, " + without_pods[0]));
  d.job.status.reason = d.job.status.conditions[0].reason = "PodNotCreated";
  EXPECT_THAT(hints_for(d), SizeIs(2));
}

TEST_F(ClusterTest, DescribeGoesOnWithoutEvents) {
  add_job(job_object("digits", "Running"));
  answer("/events", 403, refusal(403, "Forbidden", "events is forbidden"));
  EXPECT_THAT(described("digits"), HasSubstr("you may not list the events"));
}

}  // namespace
}  // namespace paceline::cli
