#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/support/paths.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

using ::testing::ElementsAre;

const std::string kGoodFolder = source_path("tests/unit/controller/api/good");

std::vector<std::string> good_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGoodFolder))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Every file of good/ is accepted without a word. tests/cluster/crd_test.py holds the API server to the same.
class GoodFile : public ::testing::TestWithParam<std::string> {};

TEST_P(GoodFile, IsAccepted) {
  const std::string text = read_whole(str_cat(kGoodFolder, "/", GetParam(), ".yaml"));
  const Parsed parsed = parse_training_job(text, GetParam());
  EXPECT_TRUE(parsed.job.has_value());
  EXPECT_EQ(render_diagnostics(parsed.diagnostics, text), "");
}

INSTANTIATE_TEST_SUITE_P(All, GoodFile, ::testing::ValuesIn(good_files()),
                         [](const auto& info) { return info.param; });

TEST(GoodFiles, TheTrainerIsTheContainerOfThatNameElseTheFirst) {
  const auto worker = [](const char* name) {
    return *parse_good(read_whole(str_cat(kGoodFolder, "/", name, ".yaml"))).spec.replica_specs.worker;
  };
  EXPECT_EQ(worker("custom").container->command.at(0), "./moons");
  EXPECT_EQ(worker("custom").container_index, 1u);
  EXPECT_EQ(worker("template").container->name, "logs");
  EXPECT_EQ(worker("template").container->env.size(), 2u);
  EXPECT_EQ(worker("own_program").container->name, "trainer");
}

TEST(GoodFiles, WithoutTrainingThereIsNone) {
  const TrainingJob job = parse_good(read_whole(kGoodFolder + "/own_program.yaml"));
  EXPECT_FALSE(job.spec.training.has_value());
  EXPECT_EQ(member_count(job), 3);
  EXPECT_EQ(job.spec.replica_specs.ps->replicas, 2);
  EXPECT_EQ(job.spec.replica_specs.evaluator->restart_policy, RestartPolicy::kAlways);
}

TEST(GoodFiles, DefaultsAreFilledIn) {
  const TrainingJob job = parse_good(kGoodJob);
  EXPECT_EQ(job.metadata.ns, "default");
  const AllReduce& a = job.spec.strategy.all_reduce;
  EXPECT_EQ(a.transport, Transport::kAuto);
  EXPECT_EQ(a.algorithm, Algorithm::kAuto);
  EXPECT_TRUE(a.overlap);
  EXPECT_EQ(a.bucket_bytes, 1048576);
  EXPECT_EQ(a.sockets_per_peer, 2);
  EXPECT_EQ(a.timeout_seconds, 30);
  EXPECT_EQ(member_count(job), 4);
  EXPECT_FALSE(job.spec.replica_specs.chief->container.has_value());
  const Training& t = *job.spec.training;
  EXPECT_EQ(t.model.activation, Activation::kRelu);
  EXPECT_EQ(t.data.label_column, -1);
  EXPECT_FALSE(t.data.header);
  EXPECT_TRUE(t.data.shape.empty());
  EXPECT_EQ(t.data.normalize.scale, 1);
  EXPECT_EQ(t.data.normalize.mean, 0);
  EXPECT_EQ(t.data.normalize.deviation, 1);
  EXPECT_FALSE(t.data.augment.flip);
  EXPECT_EQ(t.data.augment.crop, 0);
  EXPECT_EQ(t.data.prefetch, 2);
  EXPECT_EQ(t.optimizer.momentum, 0);
  EXPECT_FALSE(t.optimizer.nesterov);
  EXPECT_EQ(t.optimizer.weight_decay, 0);
  EXPECT_EQ(t.optimizer.clip_norm, 0);
  EXPECT_EQ(t.optimizer.schedule.type, ScheduleType::kConstant);
  EXPECT_EQ(t.micro_batch_size, 0);
  EXPECT_FALSE(t.epochs.has_value());
  EXPECT_FALSE(t.target.has_value());
  EXPECT_EQ(t.evaluation.every_epochs, 1) << "there is held-out data";
  EXPECT_EQ(t.evaluation.batch_size, 500);
  EXPECT_EQ(t.precision, Precision::kFp32);
  EXPECT_FALSE(t.recompute_activations);
  EXPECT_EQ(t.seed, 1);
  EXPECT_EQ(job.spec.checkpoint.location, "");
  EXPECT_EQ(job.spec.checkpoint.every_steps, 0);
  EXPECT_EQ(job.spec.checkpoint.keep, 3);
  EXPECT_FALSE(job.spec.run_policy.active_deadline_seconds.has_value());
}

TEST(GoodFiles, WithoutHeldOutDataNothingIsEvaluated) {
  const TrainingJob job = parse_good(with(kGoodJob, "      testFraction: 0.2\n", ""));
  EXPECT_FALSE(job.spec.training->evaluation.every_epochs.has_value());
}

TEST(GoodFiles, ExamplesParse) {
  const auto example = [](const char* name) {
    return parse_good(read_whole(str_cat(source_path("examples/"), name, ".yaml")));
  };
  const TrainingJob fashion = example("fashion-allreduce");
  EXPECT_EQ(member_count(fashion), 2);
  EXPECT_THAT(fashion.spec.training->model.channels, ElementsAre(16, 32));
  EXPECT_EQ(fashion.spec.training->target->accuracy, 0.90);
  EXPECT_EQ(fashion.spec.training->global_batch_size, 128);
  const TrainingJob digits = example("digits-allreduce");
  EXPECT_EQ(member_count(digits), 4);
  EXPECT_EQ(digits.spec.training->data.format, DataFormat::kCsv);
  const TrainingJob gpt = example("gpt-char");
  EXPECT_EQ(gpt.spec.training->optimizer.type, OptimizerType::kAdamW);
  EXPECT_EQ(gpt.spec.training->data.train.inputs.size(), 5u);
  const TrainingJob gpt2 = example("gpt2-gpu");
  EXPECT_EQ(gpt2.spec.training->data.format, DataFormat::kTokens);
  EXPECT_EQ(gpt2.spec.training->precision, Precision::kBf16);
}

TEST(GoodFiles, JsonIsYaml) {
  const TrainingJob job =
      parse_good(R"({"apiVersion":"paceline.dev/v1alpha1","kind":"TrainingJob","metadata":{"name":"json"},
	"spec":{"replicaSpecs":{"worker":{"replicas":2}},
	"training":{"model":{"type":"mlp","hidden":[],"classes":10},
	"data":{"format":"csv","train":{"inputs":["caf\u00e9\/a.csv"]},"testFraction":2e-1},
	"optimizer":{"learningRate":1e-2},"globalBatchSize":8,"epochs":0.5}}})");
  EXPECT_EQ(job.metadata.name, "json");
  EXPECT_THAT(job.spec.training->data.train.inputs, ElementsAre("café/a.csv"));
  EXPECT_EQ(job.spec.training->data.test_fraction, 0.2);
  EXPECT_EQ(job.spec.training->epochs, 0.5);
}

TEST(GoodFiles, RolesInAnyCase) {
  const TrainingJob job = parse_good(with(with(kGoodJob, "chief:", "Chief:"), "worker:", "WORKER:"));
  EXPECT_EQ(member_count(job), 4);
}

TEST(GoodFiles, FieldsOfTheClusterAreAcceptedAndNotRead) {
  const TrainingJob job = parse_good(str_cat(
      with(
          kGoodJob, "  name: digits\n",
          "  name: digits\n  uid: x\n  resourceVersion: \"7\"\n  generation: 2\n  creationTimestamp: null\n"),
      "status: {phase: Failed, anything: [1, {x: y}]}\n"));
  EXPECT_EQ(job.status.phase, Phase::kPending);
}

TEST(GoodFiles, LineEndsMarksAndSeparators) {
  std::string crlf;
  for (const char c : kGoodJob) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(parse_good(crlf).metadata.name, "digits");
  EXPECT_EQ(parse_good(str_cat("\xef\xbb\xbf", kGoodJob)).metadata.name, "digits");
  EXPECT_EQ(parse_good(str_cat("# first\n---\n", kGoodJob, "...\n")).metadata.name, "digits");
  EXPECT_EQ(parse_good(str_cat(kGoodJob, "---\n")).metadata.name, "digits");
}

TEST(GoodFiles, ByteOrderMarkKeepsPlaces) {
  const std::string text = str_cat("\xef\xbb\xbf", with(kGoodJob, "kind: TrainingJob", "kind: Job"));
  const Parsed parsed = parse_training_job(text, "job.yaml");
  ASSERT_EQ(parsed.diagnostics.size(), 1u);
  EXPECT_EQ(parsed.diagnostics[0].line, 2);
  EXPECT_EQ(parsed.diagnostics[0].column, 7);
}

TEST(GoodFiles, ListsAndQuantities) {
  const TrainingJob job =
      parse_good(with(with(kGoodJob, "inputs: digits.csv", "inputs: [a.csv, \"2\", !!str 3]"), "spec:\n",
                      "spec:\n  strategy: {allReduce: {bucketBytes: 512Ki, timeoutSeconds: 1.5, transport: "
                      "TCP, algorithm: Direct}}\n"));
  EXPECT_THAT(job.spec.training->data.train.inputs, ElementsAre("a.csv", "2", "3"));
  EXPECT_EQ(job.spec.strategy.all_reduce.bucket_bytes, 512 << 10);
  EXPECT_EQ(job.spec.strategy.all_reduce.timeout_seconds, 1.5);
  EXPECT_EQ(job.spec.strategy.all_reduce.transport, Transport::kTcp);
}

TEST(GoodFiles, CustomModelWithItsCommand) {
  const std::string role =
      R"({replicas: 1, template: {spec: {containers: [{name: trainer, image: "x:1", command: [./moons, "-v"], args: [a],
      env: [{name: SEED, value: "7"}, {name: EMPTY}], resources: {limits: {cpu: 500m}, requests: {cpu: 250m}}}], terminationGracePeriodSeconds: 60}}})";
  const TrainingJob job = parse_good(str_cat(R"(apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: moons, labels: {paceline.dev/team: a}, annotations: {note: "any text: at all"}}
spec:
  replicaSpecs:
    worker: )",
                                             role, R"(
  training:
    model: {type: custom, name: two-moons, parameters: {width: 32, rate: 1e-3, name: moons, on: true}}
    data: {format: custom, custom: {name: two-moons, parameters: {samples: 1000}}, testFraction: 0.25}
    optimizer: {type: Adam, learningRate: 0.01}
    globalBatchSize: 32
    epochs: 3
    target: {loss: 0.1}
  checkpoint: {location: "file:///var/ck%20pt", everySteps: 10, keep: 2}
  runPolicy: {activeDeadlineSeconds: 600}
)"));
  const Container& container = *job.spec.replica_specs.worker->container;
  EXPECT_THAT(container.command, ElementsAre("./moons", "-v"));
  EXPECT_EQ(container.env.size(), 2u);
  EXPECT_EQ(container.env[0].value, "7");
  EXPECT_EQ(container.cpu_limit, 0.5);
  EXPECT_EQ(container.cpu_request, 0.25);
  EXPECT_EQ(job.spec.replica_specs.worker->termination_grace_seconds, 60);
  EXPECT_EQ(job.spec.training->model.parameters.at("rate"), "1e-3") << "as written";
  EXPECT_EQ(job.spec.training->model.parameters.at("on"), "true");
  EXPECT_EQ(job.spec.training->data.custom.parameters.at("samples"), "1000");
  EXPECT_EQ(job.spec.run_policy.active_deadline_seconds, 600);
  EXPECT_EQ(job.metadata.labels.at("paceline.dev/team"), "a");
}

TEST(GoodFiles, RunPolicyAndElasticity) {
  const RunPolicy standard = parse_good(kGoodJob).spec.run_policy;
  EXPECT_FALSE(standard.suspend);
  EXPECT_EQ(standard.clean_pod_policy, CleanPodPolicy::kRunning);
  EXPECT_EQ(standard.backoff_limit, 6);
  EXPECT_EQ(standard.ttl_seconds_after_finished, std::nullopt);
  const TrainingJob job =
      parse_good(str_cat(with(kGoodJob, "{replicas: 3}",
                              "{replicas: 3, minReplicas: 1, maxReplicas: 3, restartPolicy: ExitCode}"),
                         R"(  runPolicy:
    suspend: true
    ttlSecondsAfterFinished: 0
    cleanPodPolicy: All
    backoffLimit: 0
    managedBy: kueue.x-k8s.io/multikueue
    schedulingPolicy: {queue: team-a.gpus, priorityClass: high, minAvailable: 4}
)"));
  const RunPolicy& p = job.spec.run_policy;
  EXPECT_TRUE(p.suspend);
  EXPECT_EQ(p.ttl_seconds_after_finished, 0);
  EXPECT_EQ(p.clean_pod_policy, CleanPodPolicy::kAll);
  EXPECT_EQ(p.backoff_limit, 0);
  EXPECT_EQ(p.managed_by, "kueue.x-k8s.io/multikueue");
  EXPECT_EQ(p.scheduling_policy.queue, "team-a.gpus");
  EXPECT_EQ(p.scheduling_policy.priority_class, "high");
  EXPECT_EQ(p.scheduling_policy.min_available, 4);
  EXPECT_EQ(job.spec.replica_specs.worker->restart_policy, RestartPolicy::kExitCode);
  EXPECT_EQ(job.spec.replica_specs.worker->min_replicas, 1);
  EXPECT_EQ(job.spec.replica_specs.worker->max_replicas, 3);
}

TEST(GoodFiles, ACustomDataSetMayBringItsOwnTestSet) {
  std::string custom = with(kGoodJob, R"(format: csv
      train: {inputs: digits.csv}
      testFraction: 0.2
)",
                            "format: custom\n      custom: {name: two-moons}\n");
  const std::string command = ", template: {spec: {containers: [{name: trainer, command: [./moons]}]}}}\n";
  custom = with(custom, "chief: {replicas: 1}\n", "chief: {replicas: 1" + command);
  custom = with(custom, "worker: {replicas: 3}\n", "worker: {replicas: 3" + command);
  EXPECT_EQ(parse_good(custom + "    target: {accuracy: 0.9}\n").spec.training->target->accuracy, 0.9);
  EXPECT_EQ(parse_good(custom + "    evaluation: {everySteps: 5}\n").spec.training->evaluation.every_steps,
            5);
  EXPECT_EQ(parse_good(custom).spec.training->evaluation.every_epochs, 1);
}

TEST(GoodFiles, WarningsDoNotStopAJob) {
  const std::string uneven = with(kGoodJob, "globalBatchSize: 64", "globalBatchSize: 63");
  Parsed parsed = parse_training_job(uneven, "job.yaml");
  ASSERT_TRUE(parsed.job.has_value());
  ASSERT_EQ(parsed.diagnostics.size(), 1u);
  EXPECT_EQ(parsed.diagnostics[0].severity, Severity::kWarning);
  EXPECT_EQ(message(parsed.diagnostics[0]),
            "spec.training.globalBatchSize: 63 samples do not divide by 4 members: some get 16, others 15");
  const std::string same = with(kGoodJob, "      testFraction: 0.2\n", "      test: {inputs: digits.csv}\n");
  parsed = parse_training_job(same, "job.yaml");
  ASSERT_TRUE(parsed.job.has_value());
  ASSERT_EQ(parsed.diagnostics.size(), 1u);
  EXPECT_EQ(parsed.diagnostics[0].severity, Severity::kWarning);
}

TEST(GoodFiles, StandbyIsWarnedOfWhereTheFirstFailureEndsTheJob) {
  const auto warnings = [](const char* worker, const char* limit) {
    const std::string text =
        str_cat(with(kGoodJob, "{replicas: 3}", worker), "  runPolicy: {backoffLimit: ", limit, "}\n");
    const Parsed parsed = parse_training_job(text, "job.yaml");
    EXPECT_TRUE(parsed.job.has_value());
    std::vector<std::string> paths;
    for (const Diagnostic& each : parsed.diagnostics) paths.push_back(each.path);
    return paths;
  };
  const std::vector<std::string> standby = {"spec.replicaSpecs.worker.standby"}, none;
  EXPECT_EQ(warnings("{replicas: 3, standby: 1, restartPolicy: OnFailure}", "0"), standby);
  EXPECT_EQ(warnings("{replicas: 3, standby: 1, restartPolicy: OnFailure}", "1"), none);
  EXPECT_EQ(warnings("{replicas: 3, standby: 1}", "0"), none) << "Never: no budget is asked";
  EXPECT_EQ(warnings("{replicas: 3, restartPolicy: OnFailure}", "0"), none);
}

TEST(GoodFiles, AReplacementOfMembersIsWarnedOfWhereTheJobReplacesNobody) {
  const auto warnings = [](const char* worker, const char* field = "  stragglers: {action: Replace}\n") {
    const std::string text = str_cat(with(kGoodJob, "{replicas: 3}", worker), field);
    const Parsed parsed = parse_training_job(text, "job.yaml");
    EXPECT_TRUE(parsed.job.has_value());
    std::vector<std::string> paths;
    for (const Diagnostic& each : parsed.diagnostics) paths.push_back(each.path);
    return paths;
  };
  const std::vector<std::string> action = {"spec.stragglers.action"}, none;
  EXPECT_EQ(warnings("{replicas: 3}"), action);
  EXPECT_EQ(warnings("{replicas: 3, restartPolicy: OnFailure, restartScope: Job}"), action);
  EXPECT_EQ(warnings("{replicas: 3, restartPolicy: OnFailure}"), none);
  const std::vector<std::string> preflight = {"spec.preflight"};
  EXPECT_EQ(warnings("{replicas: 3}", "  preflight: {}\n"), preflight);
  EXPECT_EQ(warnings("{replicas: 3}", "  preflight: {action: Report}\n"), none);
  EXPECT_EQ(warnings("{replicas: 3, restartPolicy: OnFailure}", "  preflight: {}\n"), none);
}

TEST(GoodFiles, TheWarningOfAReplacementNamesTheActionsThatAJobMayHave) {
  const auto allowed = [](const char* workers, const char* strategy) {
    const std::string text = str_cat(with(kGoodJob, "{replicas: 3}", workers),
                                     "  stragglers: {action: Replace}\n  strategy: {type: ", strategy, "}\n");
    const Parsed parsed = parse_training_job(text, "job.yaml");
    for (const Diagnostic& each : parsed.diagnostics)
      if (each.path == "spec.stragglers.action") return each.allowed;
    return std::string();
  };
  EXPECT_TRUE(allowed("{replicas: 3}", "AllReduce").starts_with("Report, Rebalance or Ignore;"));
  EXPECT_TRUE(
      allowed("{replicas: 3}\n    ps: {replicas: 1}", "ParameterServer").starts_with("Report or Ignore;"))
      << "its shares can't differ";
}

TEST(GoodFiles, AnEmptyCheckBeforeTheFirstStepHasItsDefaults) {
  const std::string text = str_cat(with(kGoodJob, "{replicas: 3}", "{replicas: 3, restartPolicy: OnFailure}"),
                                   "  preflight: {}\n");
  const Parsed parsed = parse_training_job(text, "job.yaml");
  ASSERT_TRUE(parsed.job.has_value());
  ASSERT_TRUE(parsed.job->spec.preflight.has_value());
  EXPECT_EQ(parsed.job->spec.preflight->action, PreflightAction::kExclude);
  EXPECT_EQ(parsed.job->spec.preflight->factor, 2);
  EXPECT_FALSE(parse_training_job(kGoodJob, "job.yaml").job->spec.preflight.has_value());
}

TEST(GoodFiles, SharesThatFollowSpeedAreWarnedOfWhereThereIsNothingToShareOut) {
  const auto warnings = [](const char* worker) {
    const std::string text =
        str_cat(with(kGoodJob, "{replicas: 3}", worker), "  stragglers: {action: Rebalance}\n");
    const Parsed parsed = parse_training_job(text, "job.yaml");
    EXPECT_TRUE(parsed.job.has_value());
    std::vector<std::string> paths;
    for (const Diagnostic& each : parsed.diagnostics)
      if (each.path == "spec.stragglers.action") paths.push_back(each.path);
    return paths;
  };
  const std::vector<std::string> action = {"spec.stragglers.action"}, none;
  EXPECT_EQ(warnings("{replicas: 31}"), none) << "with the chief two samples for each";
  EXPECT_EQ(warnings("{replicas: 32}"), action);
  EXPECT_EQ(warnings("{replicas: 0}"), action);
  EXPECT_EQ(warnings("{replicas: 0, maxReplicas: 0}"), action);
  EXPECT_EQ(warnings("{replicas: 0, maxReplicas: 1}"), none) << "it may be edited to have two members";
  EXPECT_EQ(warnings("{replicas: 0, minReplicas: 0}"), none) << "likewise";
}

}  // namespace
}  // namespace paceline::api
