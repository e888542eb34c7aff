#include "controller/cluster/kube/cached_files.h"

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

TEST(CachedFiles, AreThoseOnAVolumeThatIsNotThePodsOwn) {
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
  for (const char* same : {"/paceline//checkpoints", "/./paceline/x/../checkpoints/"})
    EXPECT_TRUE(keeps_files(pod(kClaim, R"([{"name": "disk", "mountPath": "//paceline/."}])"), same)) << same;
  EXPECT_FALSE(keeps_files(pod(kClaim, R"([{"name": "disk", "mountPath": "/data"}])"), "/data/../tmp"));
  EXPECT_TRUE(keeps_files(pod(R"([{"name": "paceline", "hostPath": {"path": "/srv"}}])", "[]"), kPath))
      << "a volume of that name is mounted there";
  for (const char* own :
       {R"([{"name": "disk", "emptyDir": {}}])", R"([{"name": "disk", "ephemeral": {}}])", "[]"})
    EXPECT_FALSE(keeps_files(pod(own, R"([{"name": "disk", "mountPath": "/paceline"}])"), kPath)) << own;
}

TEST(CachedFiles, ARelativePathBeginsInTheWorkingDirectory) {
  Json there = pod(R"([{"name": "disk", "persistentVolumeClaim": {}}, {"name": "own", "emptyDir": {}}])",
                   R"([{"name": "disk", "mountPath": "/data"}, {"name": "own", "mountPath": "/data/own"}])");
  EXPECT_TRUE(keeps_files(there, "checkpoints")) << "the image's own directory may be on the volume";
  Json& trainer = there["spec"]["containers"][1];
  trainer["workingDir"] = "/data";
  EXPECT_TRUE(keeps_files(there, "checkpoints"));
  EXPECT_FALSE(keeps_files(there, "own/checkpoints"));
  trainer["workingDir"] = "/srv";
  EXPECT_FALSE(keeps_files(there, "checkpoints"));
}

TEST(CachedFiles, OfCheckpointsRankZerosTemplateDecides) {
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
  for (const char* mine : {"/paceline/mine", "file:///%70aceline/my%20own"}) {
    job.spec.checkpoint.location = mine;
    EXPECT_TRUE(keeps_checkpoints(job, object)) << mine;
  }
  job.spec.checkpoint = {};
  EXPECT_FALSE(keeps_checkpoints(job, Json::object())) << "members save as they leave, and by request";
  job.spec.training.reset();
  EXPECT_TRUE(keeps_checkpoints(job, Json::object())) << "a program of its own saves by itself";
}

}  // namespace
}  // namespace paceline::kube
