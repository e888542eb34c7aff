#include "controller/dashboard/job_row.h"

#include <gtest/gtest.h>

#include "controller/cluster/kube/times.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

const WallTime kNow = *kube::parse_time("2026-01-01T00:10:00Z");

Json cluster_job() {
  return {{"metadata",
           {{"namespace", "team-a"},
            {"name", "digits"},
            {"uid", "u1"},
            {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
          {"spec",
           {{"replicaSpecs", {{"Worker", {{"replicas", 3}, {"standby", 1}}}, {"chief", Json::object()}}},
            {"training", {{"globalBatchSize", 64}, {"epochs", 60}, {"model", {{"type", "mlp"}}}}}}},
          {"status",
           {{"phase", "Running"},
            {"reason", "MembersTrain"},
            {"startTime", "2026-01-01T00:05:00Z"},
            {"restarts", {{"total", 2}}},
            {"replicaStatuses", {{{"role", "worker"}, {"ready", 3}}, {{"role", "chief"}, {"ready", 1}}}},
            {"progress",
             {{"step", 250},
              {"totalSteps", 1000},
              {"epoch", 1.5},
              {"loss", 0.25},
              {"testAccuracy", 0.9},
              {"samplesPerSecond", 6400.0},
              {"goodput", 0.95},
              {"etaSeconds", 7.5}}},
            {"stragglers", {{{"kind", "Slow"}, {"message", "worker-2 is slow"}}}}}}};
}

TEST(JobRowTest, RowsTellOfJobsOfAClusters) {
  const Json expected = {{"namespace", "team-a"},
                         {"name", "digits"},
                         {"uid", "u1"},
                         {"phase", "Running"},
                         {"reason", "MembersTrain"},
                         {"created", "2026-01-01T00:00:00Z"},
                         {"elapsedSeconds", 300.0},
                         {"step", 250},
                         {"steps", 1000},
                         {"progress", 0.25},
                         {"epoch", 1.5},
                         {"epochs", 60},
                         {"etaSeconds", 7.5},
                         {"samplesPerSecond", 6400.0},
                         {"stepsPerSecond", 100.0},
                         {"loss", 0.25},
                         {"accuracy", 0.9},
                         {"goodput", 0.95},
                         {"ready", 4},
                         {"members", 5},
                         {"restarts", 2},
                         {"stragglers", 1},
                         {"stragglerText", "worker-2 is slow"},
                         {"model", "mlp"},
                         {"strategy", "AllReduce"},
                         {"suspended", false}};
  EXPECT_EQ(job_row(cluster_job(), kNow), expected);
}

TEST(JobRowTest, UnknownFieldsAreLeftOut) {
  const Json row = job_row(Json::object(), kNow);
  EXPECT_EQ(row["phase"], "Pending");
  for (const char* key : {"loss", "accuracy", "steps", "progress", "etaSeconds", "samplesPerSecond", "model",
                          "device", "elapsedSeconds", "finished", "goodput", "strategy"})
    EXPECT_FALSE(row.contains(key)) << key;
}

TEST(JobRowTest, ARowWarnsOfWhatGetSaysBesideThePhase) {
  for (const char* reason : {"OwnerStopped", "StatusOld", "TooFewMembers"}) {
    Json object = cluster_job();
    object["status"]["reason"] = reason;
    object["status"]["message"] = "of the time before";
    EXPECT_EQ(job_row(object, kNow)["warning"], "of the time before") << reason;
  }
  Json object = cluster_job();
  const Json failed = {{"type", "CheckpointFailed"}, {"status", "True"}, {"message", "no space"}};
  object["status"]["conditions"] = Json::array({failed});
  EXPECT_EQ(job_row(object, kNow)["warning"], "saves fail: no space");
  object["spec"]["runPolicy"]["suspend"] = true;
  EXPECT_FALSE(job_row(object, kNow).contains("warning"));
  object["spec"]["runPolicy"]["suspend"] = false;
  object["status"]["conditions"][0]["status"] = "False";
  EXPECT_FALSE(job_row(object, kNow).contains("warning"));
}

TEST(JobRowTest, PodThatDoesNotStartIsAWarningWithAHint) {
  Json object = cluster_job();
  const auto say = [&object](const char* phase, const char* runs, const char* reason) {
    object["status"]["phase"] = phase;
    object["status"]["reason"] = reason;
    object["status"]["message"] = "0/2 nodes";
    object["status"]["conditions"] =
        Json::array({{{"type", "Running"}, {"status", runs}, {"reason", reason}, {"message", "0/2 nodes"}}});
  };
  for (const auto& [phase, runs] : {std::pair{"Starting", "False"}, std::pair{"Running", "True"}}) {
    say(phase, runs, "Unschedulable");
    EXPECT_EQ(job_row(object, kNow)["warning"], "Unschedulable: 0/2 nodes") << phase;
    EXPECT_EQ(pod_hints(object).size(), 1U) << phase;
  }
  say("Starting", "False", "SomethingNew");
  EXPECT_EQ(job_row(object, kNow)["warning"], "SomethingNew: 0/2 nodes");
  EXPECT_TRUE(pod_hints(object).empty()) << "nothing is known to help";
  say("Running", "True", "MembersTrain");
  EXPECT_FALSE(job_row(object, kNow).contains("warning"));
  EXPECT_TRUE(pod_hints(object).empty());
  say("Failed", "False", "PodNotCreated");
  EXPECT_FALSE(job_row(object, kNow).contains("warning"));
  EXPECT_TRUE(pod_hints(object).empty());
}

TEST(JobRowTest, RunsTellMore) {
  Json run = cluster_job();
  run["status"]["run"] = {{"phase", "Running"},
                          {"elapsedSeconds", 12.5},
                          {"device", "NVIDIA H200"},
                          {"finished", "2026-01-01T00:09:00.000Z"},
                          {"samples", 500}};
  const Json row = job_row(run, kNow);
  EXPECT_EQ(row["elapsedSeconds"], 12.5);
  EXPECT_EQ(row["device"], "NVIDIA H200");
  EXPECT_EQ(row["finished"], "2026-01-01T00:09:00.000Z");
  EXPECT_EQ(row["stepsPerSecond"], 3200.0) << "of two samples";
  run["status"]["run"]["step"] = 251;
  run["status"]["run"]["samplesPerSecond"] = 5000.0;
  EXPECT_EQ(job_row(run, kNow)["step"], 251);
  EXPECT_EQ(job_row(run, kNow)["samplesPerSecond"], 5000.0);
  EXPECT_FALSE(job_row(run, kNow).contains("accuracy")) << "the run knows of none";
}

TEST(JobRowTest, PhasesOfRunsAreTheirOwn) {
  struct Case {
    const char *status, *reason, *run, *phase;
    bool ended;
  };
  for (const Case& c : {Case{"Running", "", "Running", "Running", false},
                        {"Failed", "Stopped", "Stopped", "Stopped", true},
                        {"Failed", "Stopped", "", "Stopped", true},
                        {"Unknown", "", "Unknown", "Unknown", true},
                        {"Failed", "OwnerLost", "Failed", "Failed", true},
                        {"Suspended", "", "Running", "Suspended", false},
                        {"Succeeded", "", "Succeeded", "Succeeded", true},
                        {"", "", "", "Pending", false}}) {
    Json object = {{"status", {{"phase", c.status}, {"reason", c.reason}}}};
    if (*c.run != '\0') object["status"]["run"]["phase"] = c.run;
    EXPECT_EQ(phase_of(object), c.phase);
    EXPECT_EQ(has_ended(object), c.ended) << c.phase;
  }
}

TEST(JobRowTest, ParameterServersStepsAreCountedByRuns) {
  Json object = cluster_job();
  EXPECT_EQ(samples_per_step(object), 64);
  object["spec"]["strategy"]["type"] = "ParameterServer";
  EXPECT_EQ(samples_per_step(object), std::nullopt);
}

}  // namespace
}  // namespace paceline::dashboard
