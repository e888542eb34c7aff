#include "controller/cluster/kube/job_object.h"

#include <gtest/gtest.h>

namespace paceline::kube {
namespace {

Json job() {
  return Json::parse(R"({
    "metadata": {"name": "digits", "namespace": "team-a", "uid": "u", "managedFields": [{"manager": "x"}],
      "labels": {"a": "b"},
      "annotations": {"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
    "spec": {
      "replicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [{"image": "i"}]}}}},
      "training": {"model": {"type": "mlp", "hidden": [8], "classes": 10},
        "data": {"format": "csv", "train": {"inputs": "a.csv"}},
        "optimizer": {"learningRate": 0.1}, "globalBatchSize": 64, "steps": 10}}
  })");
}

TEST(JobObjectTest, IsParsedWithoutWhatTheServerAdds) {
  const api::Metadata metadata = job_metadata(job());
  EXPECT_EQ(metadata.ns, "team-a");
  EXPECT_EQ(metadata.annotations, (std::map<std::string, std::string>{{"note", "n"}}));
  const api::Parsed parsed = parse_job(job(), metadata);
  ASSERT_TRUE(parsed.job) << errors_of(parsed.diagnostics);
  EXPECT_EQ(api::member_count(*parsed.job), 2);
  EXPECT_EQ(parsed.job->metadata.labels.at("a"), "b");
}

TEST(JobObjectTest, ErrorsNameTheirFields) {
  Json broken = job();
  broken["spec"]["training"]["steps"] = 0;
  const api::Parsed parsed = parse_job(broken, job_metadata(broken));
  EXPECT_FALSE(parsed.job);
  EXPECT_TRUE(errors_of(parsed.diagnostics).starts_with("spec.training.steps: "));
}

TEST(JobObjectTest, TemplatesByRoleInAnyCase) {
  const auto templates = pod_templates_of(job());
  ASSERT_TRUE(templates.contains(Role::kWorker));
  EXPECT_EQ(templates.at(Role::kWorker), R"({"spec":{"containers":[{"image":"i"}]}})");
  EXPECT_TRUE(pod_templates_of(Json::object()).empty());
}

}  // namespace
}  // namespace paceline::kube
