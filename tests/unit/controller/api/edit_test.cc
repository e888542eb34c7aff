#include "controller/api/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A job in which every part is there.
const std::string kJob =
    str_cat(with(with(with(kGoodJob, "{replicas: 3}",
                           "{replicas: 3, minReplicas: 2, maxReplicas: 5, template: {spec: {containers: "
                           "[{image: a}]}}}"),
                      "spec:\n", "spec:\n  strategy: {allReduce: {sockets: 0}}\n"),
                 "{sockets: 0}", "{socketsPerPeer: 2}"),
            "  checkpoint: {everySteps: 10}\n"
            "  runPolicy: {suspend: false, backoffLimit: 3, schedulingPolicy: {queue: q}}\n");

std::vector<std::string> paths_of(const std::vector<EditError>& errors) {
  std::vector<std::string> paths;
  for (const EditError& error : errors) paths.push_back(error.path);
  return paths;
}

struct EditCase {
  const char *from, *to;
  std::string error;  // the path; empty: accepted
};

TEST(AllowedReplicas, OfAWorkerAreFromMinReplicasToMaxReplicas) {
  const auto allowed = [](const char* worker, Role role) {
    return allowed_replicas(parse_good(with(kGoodJob, "{replicas: 3}", worker)), role);
  };
  EXPECT_EQ(allowed("{replicas: 3, minReplicas: 2, maxReplicas: 5}", Role::kWorker), (ReplicaRange{2, 5}));
  EXPECT_EQ(allowed("{replicas: 3, minReplicas: 2}", Role::kWorker), (ReplicaRange{2, 255}))
      << "the chief is linked to them";
  EXPECT_EQ(allowed("{replicas: 3, maxReplicas: 5}", Role::kWorker), (ReplicaRange{1, 5}));
  EXPECT_EQ(allowed("{replicas: 3}", Role::kWorker), (ReplicaRange{3, 3}));
  EXPECT_EQ(allowed("{replicas: 3, minReplicas: 2, maxReplicas: 5}", Role::kChief), (ReplicaRange{1, 1}));
}

TEST(AllowedReplicas, StayTheSameWhateverTheyWereEditedTo) {
  const auto job = [](const char* worker) { return parse_good(with(kGoodJob, "{replicas: 3}", worker)); };
  EXPECT_THAT(edit_errors(job("{replicas: 1, minReplicas: 1}"), job("{replicas: 3, minReplicas: 1}")),
              IsEmpty());
  EXPECT_THAT(edit_errors(job("{replicas: 5, maxReplicas: 5}"), job("{replicas: 3, maxReplicas: 5}")),
              IsEmpty());
  EXPECT_THAT(edit_errors(job("{replicas: 0, maxReplicas: 5}"), job("{replicas: 0, maxReplicas: 5}")),
              IsEmpty());
  EXPECT_EQ(allowed_replicas_text(job("{replicas: 2, minReplicas: 1}"), Role::kWorker),
            "1 to 255 (minReplicas, no maxReplicas)");
}

class Edit : public ::testing::TestWithParam<EditCase> {};

TEST_P(Edit, IsJudged) {
  const EditCase& c = GetParam();
  const auto expected = c.error.empty() ? std::vector<std::string>() : std::vector<std::string>{c.error};
  EXPECT_EQ(paths_of(edit_errors(parse_good(kJob), parse_good(with(kJob, c.from, c.to)))), expected);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Edit,
    ::testing::Values(
        EditCase{"kind: TrainingJob", "kind: TrainingJob", ""},
        EditCase{"name: digits\n", "name: digits\n  labels: {a: b}\n", ""},
        EditCase{"suspend: false", "suspend: true", ""},
        EditCase{"suspend: false", "activeDeadlineSeconds: 9", ""},
        EditCase{"suspend: false", "ttlSecondsAfterFinished: 9", ""},
        EditCase{"suspend: false", "cleanPodPolicy: All", ""},
        EditCase{"backoffLimit: 3", "backoffLimit: 0", ""},
        EditCase{"  runPolicy:", "  preflight: {action: Report}\n  runPolicy:", ""},
        EditCase{"{queue: q}", "{queue: q, minAvailable: 4}", ""},
        EditCase{"suspend: false", "managedBy: a/b", "spec.runPolicy.managedBy"},
        EditCase{"{queue: q}", "{queue: r}", "spec.runPolicy.schedulingPolicy.queue"},
        EditCase{"{queue: q}", "{queue: q, priorityClass: p}",
                 "spec.runPolicy.schedulingPolicy.priorityClass"},
        EditCase{"replicas: 3, minReplicas: 2", "replicas: 2, minReplicas: 2", ""},
        EditCase{"replicas: 3, minReplicas: 2", "replicas: 5, minReplicas: 2", ""},
        EditCase{"replicas: 3, minReplicas: 2, maxReplicas: 5", "replicas: 5, minReplicas: 2, maxReplicas: 6",
                 "spec.replicaSpecs.worker.maxReplicas"},
        EditCase{"replicas: 3, minReplicas: 2, maxReplicas: 5", "replicas: 3, minReplicas: 2",
                 "spec.replicaSpecs.worker.maxReplicas"},
        EditCase{"chief: {replicas: 1}", "chief: {replicas: 0}", "spec.replicaSpecs.chief.replicas"},
        EditCase{"    chief: {replicas: 1}\n", "", "spec.replicaSpecs.chief"},
        EditCase{"image: a", "image: b", "spec.replicaSpecs.worker.template.spec.containers[0].image"},
        EditCase{"{containers: [{image: a}]}", "{containers: [{image: a}], volumes: []}",
                 "spec.replicaSpecs.worker.template.spec.volumes"},
        EditCase{"{containers: [{image: a}]}", "{containers: [{name: a, image: a}, {name: b, image: b}]}",
                 "spec.replicaSpecs.worker.template.spec.containers"},
        EditCase{"{containers: [{image: a}]}", "{containers: [{image: a, command: [x]}]}",
                 "spec.replicaSpecs.worker.template.spec.containers[0].command"},
        EditCase{", template: {spec: {containers: [{image: a}]}}", "", "spec.replicaSpecs.worker.template"},
        EditCase{"socketsPerPeer: 2", "socketsPerPeer: 3", "spec.strategy.allReduce.socketsPerPeer"},
        EditCase{"hidden: [128]", "hidden: [64]", "spec.training.model.hidden"},
        EditCase{"inputs: digits.csv", "inputs: [digits.csv, b.csv]", "spec.training.data.train.inputs"},
        EditCase{"learningRate: 0.1", "learningRate: 0.2", "spec.training.optimizer.learningRate"},
        EditCase{"steps: 100", "steps: 200", "spec.training.steps"},
        EditCase{"everySteps: 10", "everySteps: 20", "spec.checkpoint.everySteps"}));

TEST(EditErrors, SeveralAtOnceEachOnce) {
  const std::string changed = with(with(kJob, "type: mlp, hidden: [128], classes: 10",
                                        "type: cnn, channels: [4], hidden: [128], classes: 10"),
                                   "testFraction: 0.2", "test: {inputs: x}\n      shape: [1, 8, 8]");
  EXPECT_THAT(paths_of(edit_errors(parse_good(kJob), parse_good(changed))),
              ElementsAre("spec.training.data.shape", "spec.training.data.test",
                          "spec.training.data.testFraction", "spec.training.model.channels",
                          "spec.training.model.kernelSize", "spec.training.model.type"));
}

TEST(EditErrors, WhileSuspendedTheTemplateAndTheQueueMayChange) {
  const std::string suspended = with(kJob, "suspend: false", "suspend: true");
  const std::string other = with(with(kJob, "image: a", "image: b"), "queue: q", "queue: r");
  EXPECT_THAT(edit_errors(parse_good(suspended), parse_good(other)), IsEmpty()) << "resumed with the edit";
  EXPECT_THAT(edit_errors(parse_good(kJob), parse_good(with(other, "suspend: false", "suspend: true"))),
              IsEmpty())
      << "suspended with the edit";
  EXPECT_EQ(edit_errors(parse_good(kJob), parse_good(other)).size(), 2u);
}

TEST(EditErrors, SayWhatIsAllowed) {
  const auto errors = [](const std::string& from, const std::string& to) {
    return edit_errors(parse_good(from), parse_good(to)).at(0).problem;
  };
  const std::string fixed(kGoodJob);
  EXPECT_EQ(
      errors(fixed, with(fixed, "worker: {replicas: 3}", "worker: {replicas: 4}")),
      "may not be edited from 3 to 4; allowed: 3, since the job has neither minReplicas nor maxReplicas");
  EXPECT_EQ(errors(kJob, with(kJob, "replicas: 3, minReplicas: 2, maxReplicas: 5",
                              "replicas: 1, minReplicas: 1, maxReplicas: 5")),
            "may not be edited from \"2\" to \"1\"; make a new job");
  EXPECT_EQ(errors(kJob, with(kJob, "steps: 100", "epochs: 1")),
            "may not be edited from \"absent\" to \"1\"; make a new job");
  EXPECT_EQ(errors(kJob, with(kJob, "image: a", "image: b")),
            "may not be edited from \"a\" to \"b\" while the job is not suspended");
}

}  // namespace
}  // namespace paceline::api
