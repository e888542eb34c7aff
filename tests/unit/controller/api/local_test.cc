#include "controller/api/local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/api/edit.h"
#include "tests/support/paths.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> unused_of(TrainingJob& job) {
  std::vector<std::string> paths;
  for (const Unused& unused : make_local(job)) paths.push_back(unused.path);
  return paths;
}

TEST(Local, AJobOfWhatIsActedOnStaysAsItIs) {
  TrainingJob job =
      parse_good(str_cat(with(kGoodJob, "{replicas: 3}", "{replicas: 3, restartPolicy: ExitCode}"),
                         "  runPolicy: {activeDeadlineSeconds: 60, suspend: true, backoffLimit: 1}\n"));
  EXPECT_THAT(make_local(job), IsEmpty());
  EXPECT_EQ(job.spec.run_policy.active_deadline_seconds, 60);
  EXPECT_TRUE(job.spec.run_policy.suspend);
  EXPECT_EQ(job.spec.run_policy.backoff_limit, 1);
  EXPECT_EQ(job.spec.replica_specs.worker->restart_policy, RestartPolicy::kExitCode);
}

TEST(Local, IgnoredFieldsAreListedAndReset) {
  TrainingJob job = parse_good(
      str_cat(with(kGoodJob, "{replicas: 3}", "{replicas: 3, minReplicas: 1, maxReplicas: 8}"),
              "  runPolicy: {ttlSecondsAfterFinished: 9, cleanPodPolicy: None,\n"
              "    managedBy: a/b, schedulingPolicy: {queue: q, priorityClass: p, minAvailable: 4}}\n"));
  EXPECT_THAT(unused_of(job),
              ElementsAre("spec.runPolicy.ttlSecondsAfterFinished", "spec.runPolicy.cleanPodPolicy",
                          "spec.runPolicy.managedBy", "spec.runPolicy.schedulingPolicy.queue",
                          "spec.runPolicy.schedulingPolicy.priorityClass",
                          "spec.runPolicy.schedulingPolicy.minAvailable"));
  EXPECT_THAT(make_local(job), IsEmpty());
  EXPECT_THAT(
      edit_errors(
          parse_good(with(kGoodJob, "{replicas: 3}", "{replicas: 3, minReplicas: 1, maxReplicas: 8}")), job),
      IsEmpty())
      << "the rest is the same job";
}

TEST(Local, PodFieldsWithoutAProcessesCounterpartAreListed) {
  TrainingJob job = parse_good(read_whole(source_path("tests/unit/controller/api/good/template.yaml")));
  const std::string pod = "spec.replicaSpecs.worker.template";
  EXPECT_THAT(
      unused_of(job),
      ElementsAre(pod + ".metadata", pod + ".spec.priorityClassName",
                  pod + ".spec.terminationGracePeriodSeconds", pod + ".spec.nodeSelector",
                  pod + ".spec.tolerations", pod + ".spec.affinity", pod + ".spec.securityContext",
                  pod + ".spec.volumes", pod + ".spec.initContainers", pod + ".spec.containers[0].image",
                  pod + ".spec.containers[0].env[1].valueFrom", pod + ".spec.containers[1]"));
  EXPECT_EQ(job.spec.replica_specs.worker->pod_template, "");
  EXPECT_EQ(job.spec.replica_specs.worker->container->name, "logs");
}

TEST(Local, OfResourcesProcessorTimeIsLimited) {
  TrainingJob job =
      parse_good(with(kGoodJob, "{replicas: 3}",
                      "{template: {spec: {terminationGracePeriodSeconds: 9, containers: [{image: i, "
                      "command: [x], stdin: true, resources: "
                      "{limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 2}}}]}}}"));
  const std::string pod = "spec.replicaSpecs.worker.template.spec", container = pod + ".containers[0]";
  EXPECT_THAT(unused_of(job),
              ElementsAre(pod + ".terminationGracePeriodSeconds", container + ".image", container + ".stdin",
                          container + ".resources.requests", container + ".resources.limits.memory"));
  EXPECT_EQ(job.spec.replica_specs.worker->container->cpu_limit, 1);
  EXPECT_EQ(job.spec.replica_specs.worker->container->cpu_request, 0);
  EXPECT_EQ(job.spec.replica_specs.worker->termination_grace_seconds, std::nullopt);
}

TEST(Local, OfGpusItIsSaidThatOneIsUsed) {
  TrainingJob job = parse_good(with(kGoodJob, "{replicas: 3}",
                                    "{template: {spec: {containers: [{resources: {limits: "
                                    "{nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 1, memory: 1Gi}}}]}}}"));
  std::vector<bool> names_the_variable;
  for (const Unused& unused : make_local(job))
    names_the_variable.push_back(std::string_view(unused.why).find("PACELINE_DEVICE") != std::string::npos);
  EXPECT_THAT(names_the_variable, ElementsAre(true, true, false));
}

}  // namespace
}  // namespace paceline::api
