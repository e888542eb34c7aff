#include "controller/cluster/kube/kept_files.h"

#include <string>

#include "base/text.h"
#include "controller/cluster/kube/manifest.h"
#include "controller/cluster/kube/pod.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::kube {

namespace {

constexpr std::string_view kFileScheme = "file://";

bool lies_in(std::string_view path, std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  if (folder.empty() || !path.starts_with(folder)) return false;
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
  std::string mounted, name;
  const auto consider = [&](const std::string& folder, const std::string& volume) {
    if (!lies_in(path, folder) || folder.size() < mounted.size()) return;
    mounted = folder;
    name = volume;
  };
  consider(kWorkFolder, kWorkVolume);
  for (const Json& container : list_at(pod_template, {"spec", "containers"})) {
    if (text_at(container, {"name"}) != trainer) continue;
    for (const Json& mount : list_at(container, {"volumeMounts"}))
      consider(text_at(mount, {"mountPath"}), text_at(mount, {"name"}));
    break;
  }
  for (const Json& volume : list_at(pod_template, {"spec", "volumes"})) {
    if (!name.empty() && text_at(volume, {"name"}) == name)
      return at(volume, {"emptyDir"}).is_null() && at(volume, {"ephemeral"}).is_null();
  }
  return false;
}

bool keeps_checkpoints(const api::TrainingJob& job, const Json& object) {
  const api::Checkpoint& checkpoint = job.spec.checkpoint;
  if (!job.spec.training || (checkpoint.every_steps == 0 && checkpoint.every_seconds == 0)) return true;
  std::string_view location = checkpoint.location;
  if (location.starts_with(kFileScheme)) location.remove_prefix(kFileScheme.size());
  const std::string folder = location.empty() ? str_cat(kWorkFolder, "/checkpoints") : std::string(location);
  return keeps_files(template_of_rank_0(job, object), folder);
}

}  // namespace paceline::kube
