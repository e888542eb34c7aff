#include "controller/cluster/kube/kept_files.h"

#include <gtest/gtest.h>

namespace paceline::kube {
namespace {

Json pod(const char* volumes, const char* mounts) {
  return {{"spec",
           {{"volumes", Json::parse(volumes)},
            {"containers",
             Json::array({{{"name", "sidecar"},
                           {"volumeMounts",
                            Json::parse(R"([{"name": "disk", "mountPath": "/paceline/checkpoints"}])")}},
                          {{"name", "trainer"}, {"volumeMounts", Json::parse(mounts)}}})}}}};
}

TEST(KeptFiles, AreThoseOnAVolumeThatIsNotThePodsOwn) {
  constexpr char kClaim[] = R"([{"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}])";
  constexpr char kPath[] = "/paceline/checkpoints";
  EXPECT_FALSE(keeps_files(Json::object(), kPath)) << "the work folder is an emptyDir";
  EXPECT_FALSE(keeps_files(Json(), kPath));
  EXPECT_FALSE(keeps_files(pod(kClaim, "[]"), kPath)) << "it is mounted into another container";
  EXPECT_TRUE(keeps_files(pod(kClaim, R"([{"name": "disk", "mountPath": "/paceline"}])"), kPath));
  EXPECT_TRUE(
      keeps_files(pod(kClaim, R"([{"name": "disk", "mountPath": "/paceline/checkpoints/"}])"), kPath));
  EXPECT_TRUE(keeps_files(pod(kClaim, R"([{"name": "disk", "mountPath": "/"}])"), "/data/checkpoints"));
  EXPECT_FALSE(keeps_files(pod(kClaim, R"([{"name": "disk", "mountPath": "/"}])"), kPath))
      << "the work folder lies nearer";
  EXPECT_FALSE(keeps_files(pod(kClaim, R"([{"name": "disk", "mountPath": "/paceline/check"}])"), kPath));
  EXPECT_FALSE(keeps_files(pod(kClaim, R"([{"name": "disk", "mountPath": "/paceline"}])"), "checkpoints"));
  EXPECT_TRUE(keeps_files(pod(R"([{"name": "paceline", "hostPath": {"path": "/srv"}}])", "[]"), kPath))
      << "a volume of that name is mounted there";
  for (const char* own :
       {R"([{"name": "disk", "emptyDir": {}}])", R"([{"name": "disk", "ephemeral": {}}])", "[]"})
    EXPECT_FALSE(keeps_files(pod(own, R"([{"name": "disk", "mountPath": "/paceline"}])"), kPath)) << own;
}

TEST(KeptFiles, OfCheckpointsRankZerosTemplateDecides) {
  api::TrainingJob job;
  job.spec.training.emplace();
  job.spec.checkpoint.every_steps = 10;
  job.spec.replica_specs.worker = api::ReplicaSpec{2, {}, {}};
  const Json kept = pod(R"([{"name": "paceline", "nfs": {}}])", "[]");
  const Json object = {
      {"spec", {{"replicaSpecs", {{"Chief", {{"replicas", 1}}}, {"worker", {{"template", kept}}}}}}}};
  EXPECT_TRUE(keeps_checkpoints(job, object));
  EXPECT_FALSE(keeps_checkpoints(job, Json::object()));
  job.spec.replica_specs.chief = api::ReplicaSpec{1, {}, {}};
  EXPECT_FALSE(keeps_checkpoints(job, object));
  job.spec.replica_specs.chief.reset();
  job.spec.checkpoint.location = "file:///elsewhere";
  EXPECT_FALSE(keeps_checkpoints(job, object));
  job.spec.checkpoint.location = "/paceline/mine";
  EXPECT_TRUE(keeps_checkpoints(job, object));
  job.spec.checkpoint = {};
  EXPECT_TRUE(keeps_checkpoints(job, Json::object())) << "it makes none";
}

}  // namespace
}  // namespace paceline::kube
