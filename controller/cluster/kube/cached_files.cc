#include "controller/cluster/kube/cached_files.h"

#include <string>

#include "base/text.h"
#include "controller/api/training_spec.h"
#include "controller/cluster/kube/manifest.h"
#include "controller/cluster/kube/pod.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::kube {

namespace {

bool lies_in(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder)) return false;
  return folder == "/" || path.size() == folder.size() || path[folder.size()] == '/';
}

// Rank 0 writes them.
Json template_of_rank_0(const api::TrainingJob& job, const Json& object) {
  const Role leader = job.spec.replica_specs.chief ? Role::kChief : Role::kWorker;
  const Json& replicas = at(object, {"spec", "replicaSpecs"});
  if (!replicas.is_object()) return Json::object();
  for (const auto& [name, replica] : replicas.items()) {
    if (role_named(name) == leader) return at(replica, {"template"});
  }
  return Json::object();
}

}  // namespace

bool keeps_files(const Json& pod_template, std::string_view path) {
  const std::string trainer = trainer_name(at(pod_template, {"spec"}));
  Json container;
  for (const Json& each : list_at(pod_template, {"spec", "containers"})) {
    if (text_at(each, {"name"}) != trainer) continue;
    container = each;
    break;
  }
  const std::string file = api::resolve_path(text_at(container, {"workingDir"}), path);
  if (!file.starts_with('/')) return true;  // in the image's own working directory
  std::string mounted, name;
  const auto consider = [&](const std::string& mount_path, const std::string& volume) {
    const std::string folder = api::resolve_path("/", mount_path);
    if (!lies_in(file, folder) || folder.size() < mounted.size()) return;
    mounted = folder;
    name = volume;
  };
  consider(kWorkFolder, kWorkVolume);
  for (const Json& mount : list_at(container, {"volumeMounts"}))
    consider(text_at(mount, {"mountPath"}), text_at(mount, {"name"}));
  for (const Json& volume : list_at(pod_template, {"spec", "volumes"})) {
    if (!name.empty() && text_at(volume, {"name"}) == name)
      return at(volume, {"emptyDir"}).is_null() && at(volume, {"ephemeral"}).is_null();
  }
  return false;
}

bool keeps_checkpoints(const api::TrainingJob& job, const Json& object) {
  const api::Checkpoint& checkpoint = job.spec.checkpoint;
  if (!job.spec.training) return true;  // it saves by itself, or not
  std::string folder = str_cat(kWorkFolder, "/checkpoints");
  if (!checkpoint.location.empty()) {
    const auto path = api::location_path(checkpoint.location);
    if (!path.ok()) return true;  // the job's error is told elsewhere
    folder = *path;
  }
  return keeps_files(template_of_rank_0(job, object), folder);
}

}  // namespace paceline::kube
