#include "controller/cluster/kube/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text.h"
#include "controller/cluster/kube/pod.h"
#include "controller/cluster/kube/resources.h"
#include "tests/support/paths.h"

namespace paceline::kube {
namespace {

using ::testing::HasSubstr;

cluster::PodSpec spec(std::string pod_template = "") {
  cluster::PodSpec result;
  result.pod_template = std::move(pod_template);
  result.ns = "team";
  result.job = "digits";
  result.job_uid = "job-uid";
  result.role = Role::kWorker;
  result.index = 2;
  result.attempt = 1;
  result.name = "digits-worker-2-1";
  result.command = {"paceline-worker", "--fast"};
  result.env = {{"PACELINE_JOB", "team/digits"}, {"PACELINE_TOKEN", "secret"}, {"RANK", "2"}};
  return result;
}

Json manifest(const cluster::PodSpec& spec) {
  const auto pod = pod_manifest(spec, "registry.example/paceline:1");
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.ok() ? *pod : Json();
}

const char kTemplate[] = R"({
  "metadata": {"labels": {"app": "vision", "paceline.dev/role": "mine"}, "annotations": {"a": "b"},
               "finalizers": ["example.com/keep"], "name": "ignored", "ownerReferences": [{"kind": "Other"}]},
  "spec": {
    "nodeSelector": {"gpu": "a100"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
    "initContainers": [{"name": "fetch", "image": "i", "env": [{"name": "X", "value": "1"}]}],
    "securityContext": {"runAsNonRoot": true},
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}],
    "futureField": {"kept": true},
    "restartPolicy": "OnFailure",
    "containers": [
      {"name": "sidecar", "image": "s", "command": ["s"]},
      {"name": "trainer", "image": "mine:2", "command": ["python"], "args": ["train.py"],
       "resources": {"limits": {"nvidia.com/gpu": "8"}}, "securityContext": {"readOnlyRootFilesystem": true},
       "ports": [{"containerPort": 80}], "envFrom": [{"secretRef": {"name": "s"}}], "workingDir": "/w",
       "livenessProbe": {"exec": {"command": ["true"]}}, "futureField": {"kept": true},
       "env": [{"name": "RANK", "value": "mine"}, {"name": "FROM", "valueFrom": {"fieldRef": {"fieldPath": "x"}}},
               {"name": "PACELINE_JOB", "value": "a lie"}],
       "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]
  }})";

TEST(ManifestTest, APodWithoutATemplate) {
  const Json pod = manifest(spec());
  EXPECT_EQ(text_at(pod, {"metadata", "name"}), "digits-worker-2-1");
  EXPECT_EQ(text_at(pod, {"metadata", "namespace"}), "team");
  EXPECT_EQ(
      pod["metadata"]["labels"],
      (Json{{kJobNameLabel, "digits"}, {kRoleLabel, "worker"}, {kIndexLabel, "2"}, {kAttemptLabel, "1"}}));
  EXPECT_EQ(pod["metadata"]["ownerReferences"], Json::parse(R"([{"apiVersion": "paceline.dev/v1alpha1",
    "kind": "TrainingJob", "name": "digits", "uid": "job-uid", "controller": true, "blockOwnerDeletion": true}])"));
  EXPECT_EQ(text_at(pod, {"spec", "restartPolicy"}), "Never");
  EXPECT_EQ(text_at(pod, {"spec", "hostname"}), "digits-worker-2");
  EXPECT_EQ(text_at(pod, {"spec", "subdomain"}), "digits");
  ASSERT_EQ(list_at(pod, {"spec", "containers"}).size(), 1u);
  const Json& trainer = pod["spec"]["containers"][0];
  EXPECT_EQ(trainer["name"], "trainer");
  EXPECT_EQ(trainer["image"], "registry.example/paceline:1");
  EXPECT_EQ(trainer["command"], (Json{"paceline-worker", "--fast"}));
  EXPECT_EQ(trainer["terminationMessagePolicy"], "FallbackToLogsOnError");
  EXPECT_FALSE(pod["metadata"].contains("finalizers")) << "its owner's deletion is enough";
}

TEST(ManifestTest, TheTokenStandsInTheSecretOnly) {
  const Json pod = manifest(spec());
  EXPECT_EQ(dump(pod).find("\"secret\""), std::string::npos);
  EXPECT_THAT(
      dump(pod["spec"]["containers"][0]["env"]),
      HasSubstr(
          R"({"name":"PACELINE_TOKEN","valueFrom":{"secretKeyRef":{"key":"token","name":"digits-token-job-uid"}}})"));
  cluster::PodSpec without = spec();
  without.env.erase("PACELINE_TOKEN");
  EXPECT_EQ(dump(manifest(without)).find("secretKeyRef"), std::string::npos);
}

TEST(ManifestTest, ATemplateGoesThroughUntouched) {
  const Json pod = manifest(spec(kTemplate)), given = Json::parse(kTemplate);
  for (const auto& [field, value] : given["spec"].items()) {
    if (field == "containers" || field == "restartPolicy" || field == "volumes") continue;
    EXPECT_EQ(pod["spec"][field], value) << field;
  }
  EXPECT_EQ(pod["spec"]["volumes"][0], given["spec"]["volumes"][0]);
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
  EXPECT_EQ(pod["spec"]["containers"][0], given["spec"]["containers"][0]);
  const Json& trainer = pod["spec"]["containers"][1];
  const std::set<std::string> added_to = {"command", "args", "env", "volumeMounts"};
  for (const auto& [field, value] : given["spec"]["containers"][1].items()) {
    if (added_to.contains(field)) continue;
    EXPECT_EQ(trainer[field], value) << field;
  }
  EXPECT_EQ(trainer["volumeMounts"][0], given["spec"]["containers"][1]["volumeMounts"][0]);
  EXPECT_EQ(trainer["command"], (Json{"paceline-worker", "--fast"}));
  EXPECT_FALSE(trainer.contains("args"));
  EXPECT_EQ(pod["metadata"]["labels"]["app"], "vision");
  EXPECT_EQ(pod["metadata"]["labels"][kRoleLabel], "worker") << "ours can't be replaced";
  EXPECT_EQ(pod["metadata"]["annotations"], (Json{{"a", "b"}}));
  EXPECT_EQ(pod["metadata"]["finalizers"], (Json{"example.com/keep"}));
  EXPECT_EQ(pod["metadata"]["name"], "digits-worker-2-1");
  EXPECT_EQ(pod["metadata"]["ownerReferences"].size(), 1u);
}

TEST(ManifestTest, TheEnvironment) {
  std::vector<std::string> names;
  std::map<std::string, Json> env;
  const Json pod = manifest(spec(kTemplate));
  for (const Json& each : pod["spec"]["containers"][1]["env"]) {
    names.push_back(each["name"]);
    env[each["name"]] = each;
  }
  EXPECT_THAT(names, ::testing::ElementsAre("PACELINE_JOB", "PACELINE_DEVICE", "PACELINE_POD_UID",
                                            "PACELINE_ADDRESS", "PACELINE_TOKEN", "RANK", "FROM"));
  EXPECT_EQ(env["PACELINE_JOB"]["value"], "team/digits") << "ours alone";
  EXPECT_EQ(env["RANK"]["value"], "mine") << "what the template says stays";
  EXPECT_EQ(env["FROM"]["valueFrom"]["fieldRef"]["fieldPath"], "x");
  EXPECT_EQ(env["PACELINE_POD_UID"]["valueFrom"]["fieldRef"]["fieldPath"], "metadata.uid");
  EXPECT_EQ(env["PACELINE_ADDRESS"]["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP");
}

// Who was given a GPU computes there, unless its container says where: the template, which `env` repeats.
TEST(ManifestTest, TheDeviceIsTheGpuThatAPodWasGiven) {
  const auto device = [](const std::string& limits, const char* own) {
    cluster::PodSpec with = spec();
    Json container = {{"name", "trainer"}, {"resources", {{"limits", Json::parse(limits)}}}};
    if (own != nullptr) {
      container["env"] = {{{"name", "PACELINE_DEVICE"}, {"value", own}}};
      with.env["PACELINE_DEVICE"] = own;
    }
    with.pod_template = Json{{"spec", {{"containers", {container}}}}}.dump();
    const Json pod = manifest(with);
    std::string found;
    for (const Json& each : pod["spec"]["containers"][0]["env"]) {
      if (each["name"] == "PACELINE_DEVICE") found += each["value"];
    }
    return found;
  };
  EXPECT_EQ(device(R"({"nvidia.com/gpu": 1})", nullptr), "cuda");
  EXPECT_EQ(device(R"({"nvidia.com/mig-1g.10gb": "2"})", nullptr), "cuda");
  EXPECT_EQ(device(R"({"nvidia.com/gpu": "1"})", "cpu"), "cpu");
  EXPECT_EQ(device(R"({"nvidia.com/gpu": "0", "cpu": "4"})", nullptr), "");
  EXPECT_EQ(device(R"({"nvidia.com/gpu": 0})", nullptr), "");
  EXPECT_EQ(device("null", nullptr), "");
}

TEST(ManifestTest, AValueFromElsewhereStaysOfTheVariablesThatAreAJobsOwn) {
  cluster::PodSpec with = spec(R"({"spec": {"containers": [{"name": "trainer", "env": [
      {"name": "PACELINE_CUDA_GRAPHS", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
      {"name": "PACELINE_INDEX", "value": "a lie"}]}]}})");
  with.env["PACELINE_CUDA_GRAPHS"] = "";  // as it is read of the template
  std::string found;
  const Json pod = manifest(with);
  for (const Json& each : pod["spec"]["containers"][0]["env"]) {
    if (each["name"] == "PACELINE_CUDA_GRAPHS") found += each.dump();
    EXPECT_NE(each.value("value", ""), "a lie");
  }
  EXPECT_EQ(found,
            R"({"name":"PACELINE_CUDA_GRAPHS","valueFrom":{"configMapKeyRef":{"key":"k","name":"c"}}})");
}

// What is mounted at /paceline: the volume's name, and where it comes from.
struct WorkFolder {
  const char* what;
  const char* pod_template;
  const char* mounts;
  const char* volumes;
};
constexpr WorkFolder kWorkFolders[] = {
    {"without a template", "", R"([{"mountPath": "/paceline", "name": "paceline"}])",
     R"([{"name": "paceline", "emptyDir": {}}])"},
    {"a volume mounted there stays", R"({"spec": {"volumes": [{"name": "disk", "hostPath": {"path": "/d"}}],
      "containers": [{"volumeMounts": [{"name": "disk", "mountPath": "/paceline"}]}]}})",
     R"([{"name": "disk", "mountPath": "/paceline"}])", R"([{"name": "disk", "hostPath": {"path": "/d"}}])"},
    {"a volume of that name is used",
     R"({"spec": {"volumes": [{"name": "paceline", "hostPath": {"path": "/d"}}]}})",
     R"([{"mountPath": "/paceline", "name": "paceline"}])",
     R"([{"name": "paceline", "hostPath": {"path": "/d"}}])"},
    {"one below it does not count", R"({"spec": {"volumes": [{"name": "disk", "hostPath": {"path": "/d"}}],
      "containers": [{"volumeMounts": [{"name": "disk", "mountPath": "/paceline/checkpoints"}]}]}})",
     R"([{"name": "disk", "mountPath": "/paceline/checkpoints"}, {"mountPath": "/paceline", "name": "paceline"}])",
     R"([{"name": "disk", "hostPath": {"path": "/d"}}, {"name": "paceline", "emptyDir": {}}])"},
};

TEST(ManifestTest, MembersHaveAFolderToWriteTo) {
  for (const WorkFolder& folder : kWorkFolders) {
    const Json pod = manifest(spec(folder.pod_template));
    EXPECT_EQ(pod["spec"]["containers"][0]["volumeMounts"], Json::parse(folder.mounts)) << folder.what;
    EXPECT_EQ(pod["spec"]["volumes"], Json::parse(folder.volumes)) << folder.what;
  }
  cluster::PodSpec without = spec();
  without.env.erase("PACELINE_TOKEN");
  EXPECT_FALSE(manifest(without)["spec"].contains("volumes")) << "it is no member of a coordinator";
}

TEST(ManifestTest, PriorityAndTimeToSaveWhereTheTemplateSaysNothing) {
  cluster::PodSpec with = spec();
  EXPECT_FALSE(manifest(with)["spec"].contains("priorityClassName")) << "the cluster's default";
  EXPECT_FALSE(manifest(with)["spec"].contains("terminationGracePeriodSeconds"));
  with.priority_class = "high";
  with.save_grace = std::chrono::milliseconds(310'500);
  EXPECT_EQ(manifest(with)["spec"]["priorityClassName"], "high");
  EXPECT_EQ(manifest(with)["spec"]["terminationGracePeriodSeconds"], 311);
  with.pod_template = R"({"spec": {"priorityClassName": "low", "terminationGracePeriodSeconds": 0}})";
  EXPECT_EQ(manifest(with)["spec"]["priorityClassName"], "low");
  EXPECT_EQ(manifest(with)["spec"]["terminationGracePeriodSeconds"], 0);
}

TEST(ManifestTest, ANodeThatIsAvoidedIsRuledOutBesideWhatTheTemplateAsks) {
  EXPECT_FALSE(manifest(spec())["spec"].contains("affinity"));
  cluster::PodSpec with = spec();
  with.avoid_host = "node-2";
  const Json other = {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {"node-2"}}};
  const auto terms = [](const Json& pod) {
    return pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
              ["nodeSelectorTerms"];
  };
  EXPECT_EQ(terms(manifest(with)), Json::array({{{"matchFields", {other}}}}));
  EXPECT_EQ(manifest(with)["metadata"]["annotations"]["paceline.dev/avoids"], "node-2");
  with.pod_template = R"({"spec": {"affinity": {"podAffinity": {"a": 1}, "nodeAffinity": {
      "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [1]}, {}]}}}}})";
  const Json pod = manifest(with);
  EXPECT_EQ(terms(pod),
            Json::array({{{"matchExpressions", {1}}, {"matchFields", {other}}}, {{"matchFields", {other}}}}));
  EXPECT_EQ(pod["spec"]["affinity"]["podAffinity"], Json({{"a", 1}}));
  with.pod_template = R"({"spec": {"nodeName": "node-2"}})";
  EXPECT_FALSE(manifest(with)["spec"].contains("affinity")) << "no scheduler is asked";
}

TEST(ManifestTest, NodesThatAreShunnedAreTheLastChoice) {
  cluster::PodSpec with = spec();
  with.shunned_hosts = {"node-2", "node-3"};
  const auto preferred = [](const Json& pod) {
    return pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
  };
  const auto other = [](const char* node) {
    return Json({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {node}}});
  };
  const Json ours = {{"weight", 100}, {"preference", {{"matchFields", {other("node-2"), other("node-3")}}}}};
  EXPECT_EQ(preferred(manifest(with)), Json::array({ours}));
  with.pod_template =
      R"({"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [1]}}}})";
  EXPECT_EQ(preferred(manifest(with)), Json::array({1, ours}));
}

// Of its table of what is added to pods.
std::vector<std::string> rows_of_the_guide() {
  std::stringstream guide;
  guide << std::ifstream(source_path("docs/kubernetes.md")).rdbuf();
  std::vector<std::string> rows;
  bool in_section = false;
  for (std::string line; std::getline(guide, line);) {
    if (line.starts_with("## ")) in_section = line == "## What is added to your pods";
    if (in_section && line.starts_with("| ")) rows.push_back(line);
  }
  return rows;
}

TEST(ManifestTest, TheGuideSaysWhatIsAdded) {
  cluster::PodSpec with = spec();
  with.priority_class = "high";
  with.save_grace = std::chrono::seconds(310);
  with.avoid_host = "node-2";
  const Json pod = manifest(with);
  const std::vector<std::string> rows = rows_of_the_guide();
  const auto said = [&](const std::string& where, const std::string& what) {
    return std::ranges::any_of(rows, [&](const std::string& row) {
      return row.find(where) != std::string::npos && row.find(what) != std::string::npos;
    });
  };
  for (const auto& [field, value] : pod["metadata"].items()) {
    EXPECT_TRUE(field == "namespace" || said("metadata.", str_cat("`metadata.", field, "`"))) << field;
  }
  for (const auto& [label, value] : pod["metadata"]["labels"].items()) {
    EXPECT_TRUE(said("`metadata.labels`", str_cat("`", label, "`"))) << label;
  }
  for (const auto& [field, value] : pod["spec"].items()) {
    EXPECT_TRUE(field == "containers" || said("spec.", str_cat("`spec.", field, "`"))) << field;
  }
  for (const auto& [field, value] : pod["spec"]["containers"][0].items()) {
    EXPECT_TRUE(field == "name" || said("trainer: ", str_cat("`", field, "`"))) << field;
  }
  EXPECT_GT(rows.size(), 10u);
}

TEST(ManifestTest, WithoutACommandTheTemplatesOwnRuns) {
  cluster::PodSpec with = spec(kTemplate);
  with.command.clear();
  const Json pod = manifest(with);
  const Json& trainer = pod["spec"]["containers"][1];
  EXPECT_EQ(trainer["command"], (Json{"python"}));
  EXPECT_EQ(trainer["args"], (Json{"train.py"}));
}

TEST(ManifestTest, WithoutATrainerItIsTheFirstContainer) {
  const Json pod = manifest(spec(R"({"spec": {"containers": [
      {"name": "a", "image": "i", "terminationMessagePolicy": "File"}, {"name": "b", "image": "i"}]}})"));
  EXPECT_EQ(pod["spec"]["containers"][0]["command"].size(), 2u);
  EXPECT_EQ(pod["spec"]["containers"][0]["terminationMessagePolicy"], "File");
  EXPECT_EQ(pod["spec"]["containers"][1], (Json{{"name", "b"}, {"image", "i"}}));
}

TEST(ManifestTest, ContainerBesideAProgramHearsOfItsSteps) {
  cluster::PodSpec told = spec(kTemplate);
  told.command.clear();
  told.hears_steps = true;
  const Json pod = manifest(told);
  ASSERT_EQ(list_at(pod, {"spec", "initContainers"}).size(), 2u);
  const Json& listener = pod["spec"]["initContainers"][0];
  EXPECT_EQ(pod["spec"]["initContainers"][1]["name"], "fetch") << "the template's stay behind it";
  EXPECT_EQ(listener["name"], kStepsContainer);
  EXPECT_EQ(listener["image"], "registry.example/paceline:1");
  EXPECT_EQ(listener["command"], (Json{"paceline-worker", "--steps"}));
  EXPECT_EQ(listener["restartPolicy"], "Always");
  EXPECT_EQ(listener["resources"]["limits"], listener["resources"]["requests"]);
  EXPECT_EQ(listener["securityContext"]["runAsNonRoot"], true);
  std::vector<std::string> names;
  for (const Json& each : listener["env"]) names.push_back(each["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"PACELINE_JOB", "PACELINE_POD_UID", "PACELINE_STEPS",
                                             "PACELINE_TOKEN"}));
  EXPECT_EQ(listener["env"][3]["valueFrom"]["secretKeyRef"]["key"], "token");
  // The program sends to the same place, and acts for nobody at the coordinator.
  const Json& trainer = pod["spec"]["containers"][1];
  EXPECT_EQ(std::ranges::count(trainer["env"], listener["env"][2]), 1);
  EXPECT_EQ(std::ranges::count(trainer["env"], Json("PACELINE_TOKEN"),
                               [](const Json& each) { return each["name"]; }),
            0);
  EXPECT_EQ(trainer["volumeMounts"].size(), 1u);
  EXPECT_EQ(trainer["image"], "mine:2");
  EXPECT_EQ(pod_manifest(told, "").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ManifestTest, InvalidTemplateOrNameIsRefused) {
  for (const char* bad :
       {"{", "[]", "7", R"({"spec": []})", R"({"metadata": 1})", R"({"spec": {"containers": {}}})",
        R"({"spec": {"containers": [1]}})", R"({"spec": {"containers": [{"name": "a", "env": {}}]}})",
        R"({"spec": {"volumes": {}}})", R"({"spec": {"initContainers": {}}})",
        R"({"spec": {"containers": [{"volumeMounts": "/d"}]}})"}) {
    const absl::Status status = pod_manifest(spec(bad), "i").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("digits-worker-2-1"));
  }
  for (const char* name : {"", "../a", "A", "a.b"}) {
    cluster::PodSpec with = spec();
    with.name = name;
    EXPECT_EQ(pod_manifest(with, "i").status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  cluster::PodSpec long_job = spec();
  long_job.job = std::string(60, 'j');
  EXPECT_THAT(std::string(pod_manifest(long_job, "i").status().message()), HasSubstr("at most 63"));
  cluster::PodSpec long_name = spec();
  long_name.name = std::string(70, 'n');
  EXPECT_TRUE(pod_manifest(long_name, "i").ok()) << "Kubernetes lets pods' names be longer than host names";
  long_name.name = std::string(254, 'n');
  EXPECT_FALSE(pod_manifest(long_name, "i").ok());
  cluster::PodSpec empty = spec();
  empty.command.clear();
  EXPECT_EQ(pod_manifest(empty, "i").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ManifestTest, ItIsReadBackAsItWasMeant) {
  Json pod = manifest(spec());
  pod["metadata"]["uid"] = "u";
  const auto slim = slim_pod(pod);
  ASSERT_TRUE(slim);
  const cluster::Pod back = to_cluster_pod(*slim);
  EXPECT_EQ(back.spec.name, spec().name);
  EXPECT_EQ(back.spec.job, spec().job);
  EXPECT_EQ(back.spec.job_uid, spec().job_uid);
  EXPECT_EQ(back.spec.role, spec().role);
  EXPECT_EQ(back.spec.index, spec().index);
  EXPECT_EQ(back.spec.attempt, spec().attempt);
}

TEST(ManifestTest, ServiceAndSecret) {
  const Json service = service_manifest({"team", "digits", "job-uid"});
  EXPECT_EQ(text_at(service, {"metadata", "name"}), "digits");
  EXPECT_EQ(text_at(service, {"spec", "clusterIP"}), "None");
  EXPECT_TRUE(flag_at(service, {"spec", "publishNotReadyAddresses"}));
  EXPECT_EQ(service["spec"]["selector"], (Json{{kJobNameLabel, "digits"}}));
  EXPECT_EQ(owner_uid(service), "job-uid");
  const Json secret = secret_manifest({"team", "digits", "job-uid"}, "t");
  EXPECT_EQ(text_at(secret, {"metadata", "name"}), "digits-token-job-uid");
  EXPECT_EQ(text_at(secret, {"stringData", "token"}), "t");
  EXPECT_TRUE(flag_at(secret, {"immutable"}));
  EXPECT_EQ(owner_uid(secret), "job-uid");
  for (const Json& object : {service, secret}) EXPECT_FALSE(object["metadata"].contains("finalizers"));
}

TEST(ManifestTest, EarlierServicesComeToSelectPods) {
  const Json service = service_manifest({"team", "digits", "job-uid"});
  EXPECT_TRUE(selects_pods(service, "digits"));
  const Json earlier[] = {nullptr,
                          {{kJobNameLabel, "digits"}, {"paceline.dev/has-host-name", "true"}},
                          {{"paceline.dev/nobody", "true"}}};
  for (const Json& selector : earlier) {
    Json changed = service;
    changed["spec"]["selector"] = selector;
    EXPECT_FALSE(selects_pods(changed, "digits")) << selector;
    changed.merge_patch(selecting_pods("digits", "17"));
    EXPECT_EQ(changed["spec"], service["spec"]) << selector;
    EXPECT_EQ(text_at(changed, {"metadata", "resourceVersion"}), "17");
  }
}

}  // namespace
}  // namespace paceline::kube
