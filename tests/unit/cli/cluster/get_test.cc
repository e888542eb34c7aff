#include "cli/cluster/job_view.h"
#include "tests/unit/cli/cluster/cluster_fixture.h"

namespace paceline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ClusterTest, ListsTheJobsOfANamespace) {
  add_job(job_object("digits", "Running"));
  add_job(job_object("new"));
  add_job(job_object("elsewhere"), "team-b");
  ASSERT_TRUE(get_jobs(call_, {}).ok());
  EXPECT_EQ(out_.str(),
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
  ASSERT_TRUE(get_jobs(call_, {.output = "wide"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("NAMESPACE  NAME       PHASE"));
  EXPECT_THAT(out_.str(), HasSubstr("AGE  REASON        QUEUE  CHECKPOINT\n"));
  EXPECT_THAT(out_.str(), ::testing::ContainsRegex("MembersTrain  night  +1,200\n"));
  EXPECT_THAT(out_.str(), HasSubstr("team-b     elsewhere"));
}

TEST_F(ClusterTest, ManyJobsComeInPages) {
  for (int i = 0; i < 1100; ++i) add_job(job_object(str_cat("job-", i)));
  ASSERT_TRUE(get_jobs(call_, {.output = "name"}).ok());
  EXPECT_EQ(std::ranges::count(out_.str(), '\n'), 1100);
  EXPECT_EQ(server_.requests("GET /apis/paceline.dev"), 3);
}

TEST_F(ClusterTest, PrintsObjectsForPrograms) {
  add_job(job_object());
  ASSERT_TRUE(get_jobs(call_, {.name = "digits", .output = "json"}).ok());
  const auto one = kube::Json::parse(out_.str());
  EXPECT_EQ(one["kind"], "TrainingJob");
  EXPECT_EQ(one["spec"]["replicaSpecs"]["worker"]["replicas"], 3);
  EXPECT_FALSE(one["metadata"].contains("managedFields"));
  out_.str("");
  ASSERT_TRUE(get_jobs(call_, {.output = "json"}).ok());
  EXPECT_EQ(kube::Json::parse(out_.str())["items"][0]["kind"], "TrainingJob");
  out_.str("");
  ASSERT_TRUE(get_jobs(call_, {.name = "digits", .output = "yaml"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("kind: TrainingJob\n"));
  EXPECT_THAT(out_.str(), HasSubstr("    worker:\n      maxReplicas: 5\n"));
  out_.str("");
  ASSERT_TRUE(get_jobs(call_, {.output = "name"}).ok());
  EXPECT_EQ(out_.str(), "trainingjob.paceline.dev/digits\n");
}

TEST_F(ClusterTest, AnEmptyNamespaceIsNoError) {
  EXPECT_TRUE(get_jobs(call_, {}).ok());
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "No jobs in namespace team-a. Start one with `paceline apply -f job.yaml`.\n");
  ASSERT_TRUE(get_jobs(call_, {.output = "json"}).ok());
  EXPECT_TRUE(kube::Json::parse(out_.str())["items"].empty());
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
  answer_text("/trainingjobs", 404, "404 page not found\n");
  absl::Status status = get_jobs(call_, {});
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Paceline is not installed there"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("context dev"));

  answer("/trainingjobs", 403,
         refusal(403, "Forbidden", "trainingjobs.paceline.dev is forbidden: User \"eve\" cannot list"));
  status = get_jobs(call_, {});
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("you may not list the jobs of namespace team-a: trainingjobs.paceline.dev is forbidden"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kubectl auth can-i list trainingjobs.paceline.dev -n team-a"));

  answer("/trainingjobs", 401, refusal(401, "Unauthorized", "Unauthorized"));
  EXPECT_THAT(std::string(get_jobs(call_, {}).message()), HasSubstr("log in again"));

  server_.set_faults([](const kube::Request&) {
    return FakeApiServer::Fault{.broken = absl::UnavailableError("connection refused")};
  });
  EXPECT_THAT(std::string(get_jobs(call_, {}).message()), HasSubstr("no answer from https://10.0.0.1:6443"));
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
  server_.create("events", "team-a",
                 event_object("b", "Pod", "digits-worker-1-1", "Started", "2026-01-31T12:04:00Z"));
  server_.create("events", "team-a",
                 event_object("a", "TrainingJob", "digits", "Running", "2026-01-31T12:03:00Z"));
  server_.create("events", "team-a",
                 event_object("c", "Pod", "digits-2-worker-0-0", "Foreign", "2026-01-31T12:04:00Z"));
  server_.create("events", "team-a",
                 event_object("d", "Pod", "digits-worker-0-0", "Foreign", "2026-01-31T11:59:00Z"));

  ASSERT_TRUE(describe_job(call_, "digits").ok()) << err_.str();
  const std::string text = out_.str();
  EXPECT_THAT(text, HasSubstr("digits  Running\n"));
  EXPECT_THAT(text, HasSubstr("test accuracy  87.50 %"));
  EXPECT_THAT(
      text, HasSubstr("replicas  chief=1, restartPolicy Never, worker=3 (2 to 5), restartPolicy OnFailure"));
  EXPECT_THAT(
      text, ::testing::ContainsRegex("restarts +1 \\(backoffLimit [0-9]+\\)\n +1 because of worker: Killed\n"
                                     " +resized +2 times\n"));
  EXPECT_THAT(text, HasSubstr("Running  True    4m     MembersTrain  all train"));
  EXPECT_THAT(text, HasSubstr("worker-1  digits-worker-1-0  node-1  Failed"));
  EXPECT_THAT(text, HasSubstr("exit code 1"));
  EXPECT_THAT(text, HasSubstr("Unschedulable: 0/2 nodes are available"));
  EXPECT_THAT(text, HasSubstr("pod digits-worker-2-1, Unschedulable: no node has room for it"));
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "MEMBER +NODE +PHASE +STEP +INPUT +COMPUTE +WAIT +TRANSFER +UPDATE +TOTAL ms\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("worker-1 +node-1 +Training +120 +- +1.50 +0.50 +- +- +2.00\n"));
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
  ASSERT_TRUE(describe_job(call_, "digits").ok()) << err_.str();
  const std::string text = out_.str();
  EXPECT_THAT(
      text, HasSubstr("gradients      each step counts the first 3 of 4 gradients: 48 of 64 samples (75 %); "
                      "40 of 240 gradients (17 %) came too late and were dropped\n"));
  EXPECT_THAT(text,
              HasSubstr("staleness      0: 55 %, 1: 40 %, 2: 5 % of 200 gradients; mean 0.50, most 2\n"));
  EXPECT_THAT(text, HasSubstr("steps          120 of 200 (5,760 samples, ")) << "those that count";
  EXPECT_THAT(text, ::testing::ContainsRegex("length +200 steps, 48 of 64 samples \\(75 %\\) each step\n"));
  EXPECT_THAT(text, HasSubstr("worker-1          100       20       0.50    2"));

  out_.str("");
  ASSERT_TRUE(top_job(call_, {.name = "digits", .once = true}).ok()) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\nstaleness of 200 gradients:  0: 55 %  1: 40 %  2: 5 %\n"));
}

TEST_F(ClusterTest, WhatBecameOfGradientsIsKnownWhenThePodsAreGone) {
  add_job(job_that_drops("Succeeded"));
  ASSERT_TRUE(describe_job(call_, "digits").ok()) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("40 of 240 gradients (17 %) came too late"));
  EXPECT_THAT(out_.str(), HasSubstr("0: 55 %, 1: 40 %, 2: 5 % of 200 gradients"));
  out_.str("");
  add_pod(pod_object("digits", "worker", 0, 1, "Succeeded"));
  add_pod(pod_object("digits", "worker", 1, 2, "Succeeded"));
  ASSERT_TRUE(describe_job(call_, "digits").ok()) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("0: 60 %, 1: 30 %, 2: 10 % of 100 gradients"))
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
  const auto now = ::testing::ContainsRegex(
      "worker-0 +- +NVIDIA H200 +- +41.25 +1.50 +93 % +41 % +- +- +3,201 +- +612 "
      "of 700 +power cap +2 Xids \\(79\\), "
      "1 uncorrected ECC, 3 PCIe replays\n");
  add_job(job);
  add_pod(pod_object("digits", "worker", 0, 1));
  ASSERT_TRUE(describe_job(call_, "digits").ok()) << err_.str();
  EXPECT_THAT(out_.str(), now);
  out_.str("");
  ASSERT_TRUE(top_job(call_, {.name = "digits", .once = true}).ok()) << err_.str();
  EXPECT_THAT(out_.str(), now);

  job["metadata"]["name"] = "failed";
  job["status"]["phase"] = "Failed";
  add_job(job);
  out_.str("");
  ASSERT_TRUE(describe_job(call_, "failed").ok()) << err_.str();
  EXPECT_THAT(
      out_.str(),
      ::testing::ContainsRegex(
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
  ASSERT_TRUE(describe_job(call_, "digits").ok()) << err_.str();
  const std::string described = out_.str();
  out_.str("");
  ASSERT_TRUE(top_job(call_, {.name = "digits", .once = true}).ok()) << err_.str();
  for (const std::string& text : {described, out_.str()}) {
    EXPECT_THAT(text, ::testing::ContainsRegex("chief-0 +node-1 +training +120"));
    EXPECT_THAT(text, ::testing::ContainsRegex("worker-0 +node-2 +Finished, pod gone +120"));
    EXPECT_THAT(text, ::testing::ContainsRegex("worker-1 +node-2 +Lost, pod gone +120"));
    EXPECT_THAT(text, ::testing::ContainsRegex("worker-2 +node-2 +pod gone +120")) << "it trains no more";
    EXPECT_THAT(text, ::testing::ContainsRegex("worker-3 +node-2 +Succeeded, pod gone +120"));
    EXPECT_THAT(text, ::testing::ContainsRegex("worker-4 +node-1 +Running +0"));
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
  ASSERT_TRUE(top_job(call_, {.name = "digits", .once = true}).ok()) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("ps-0     0 %      0   0.0      400  12,345  1.0 MiB"))
      << "its pod is gone";
  out_.str("");
  add_pod(pod_object("digits", "ps", 0, 1, "Succeeded"));
  ASSERT_TRUE(top_job(call_, {.name = "digits", .once = true}).ok()) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("ps-0     0 %      0   0.0      400  12,345  1.0 MiB")) << "no rates";
  EXPECT_THAT(out_.str(), Not(HasSubstr("\n\n\n"))) << "one empty line above the result";
}

TEST_F(ClusterTest, DescribeWithoutANameTakesTheNewestThatGoesOn) {
  add_job(job_object("a-old", "Succeeded"));
  add_job(job_object("b-running", "Running"));
  add_job(job_object("c-done", "Failed"));
  ASSERT_TRUE(describe_job(call_, "").ok());
  EXPECT_THAT(out_.str(), HasSubstr("b-running  Running\n"));
}

TEST_F(ClusterTest, DescribeHintsAtWhatIsWrong) {
  add_job(job_object("unseen"));
  ASSERT_TRUE(describe_job(call_, "unseen").ok());
  EXPECT_THAT(out_.str(), HasSubstr("no controller has looked at it yet"));
  out_.str("");
  kube::Json broken = job_object("broken", "Failed");
  broken["spec"]["training"]["steps"] = 0;
  broken["spec"]["runPolicy"]["suspend"] = true;
  add_job(broken);
  ASSERT_TRUE(describe_job(call_, "broken").ok());
  EXPECT_THAT(out_.str(), HasSubstr("spec.training.steps: "));
  EXPECT_THAT(out_.str(), HasSubstr("mend it by kubectl edit tj/broken -n team-a"));
  out_.str("");
  kube::Json suspended = job_object("asleep", "Suspended");
  suspended["spec"]["runPolicy"]["suspend"] = true;
  add_job(suspended);
  ASSERT_TRUE(describe_job(call_, "asleep").ok());
  EXPECT_THAT(out_.str(), HasSubstr("paceline resume asleep -n team-a"));
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
  ASSERT_TRUE(describe_job(call_, "digits").ok());
  const std::string fault =
      "\nFault:\n"
      "  member    worker-1, pod digits-worker-1-1 on node-2\n"
      "  kind      Failed\n"
      "  cause     Exited\n"
      "  exit      exited with code 1\n"
      "  evidence  no such file\n"
      "  victim    chief-0 lost its link to worker-1\n";
  EXPECT_THAT(out_.str(), HasSubstr(fault));
  EXPECT_THAT(out_.str(), HasSubstr("its log: paceline logs digits worker/1 -n team-a"));
  EXPECT_THAT(out_.str(), HasSubstr("Error: it " + std::string(60, 'x') + " ..., exit code 1"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("and more")));
}

TEST_F(ClusterTest, DescribeHintsAtTemplatesThatAreRefused) {
  kube::Json job = job_object("digits", "Starting");
  job["status"]["reason"] = "PodNotCreated";
  add_job(job);
  ASSERT_TRUE(describe_job(call_, "digits").ok());
  EXPECT_THAT(out_.str(),
              HasSubstr("mend what the message names in the role's template (kubectl edit tj/digits"));
}

TEST_F(ClusterTest, DescribeGoesOnWithoutEvents) {
  add_job(job_object("digits", "Running"));
  answer("/events", 403, refusal(403, "Forbidden", "events is forbidden"));
  ASSERT_TRUE(describe_job(call_, "digits").ok());
  EXPECT_THAT(out_.str(), HasSubstr("you may not list the events"));
}

}  // namespace
}  // namespace paceline::cli
