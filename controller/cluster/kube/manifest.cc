#include "controller/cluster/kube/manifest.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "controller/api/gpus.h"
#include "controller/api/scalars.h"
#include "controller/cluster/kube/pod.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::kube {

namespace {

constexpr std::size_t kMaxPodNameBytes = 253;  // its host name is another, shorter one
// Earlier versions selected by these labels.
constexpr const char* kEarlierLabels[] = {"paceline.dev/has-host-name", "paceline.dev/nobody"};

Json metadata_of(const Owner& owner, const std::string& name) {
  Json metadata = {{"name", name}, {"namespace", owner.ns}, {"labels", {{kJobNameLabel, owner.job}}}};
  if (owner.uid.empty()) return metadata;
  metadata["ownerReferences"] = Json::array({{{"apiVersion", kTrainingJobs.api_version},
                                              {"kind", kTrainingJobs.kind},
                                              {"name", owner.job},
                                              {"uid", owner.uid},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}});
  return metadata;
}

// A child of the job, but for what it is for.
Json child_manifest(const Resource& resource, const Owner& owner, const std::string& name) {
  return {
      {"apiVersion", resource.api_version}, {"kind", resource.kind}, {"metadata", metadata_of(owner, name)}};
}

absl::Status wrong(const cluster::PodSpec& spec, std::string_view what) {
  return absl::InvalidArgumentError(str_cat("pod ", spec.ns, "/", sanitize_line(spec.name, 80), ": ", what));
}

absl::Status check_names(const cluster::PodSpec& spec) {
  const std::pair<std::string, std::size_t> kNames[] = {
      {spec.ns, 63}, {spec.job, 63}, {host_name(spec), 63}, {spec.name, kMaxPodNameBytes}};
  for (const auto& [name, limit] : kNames) {
    if (is_dns_label(name, limit)) continue;
    return wrong(spec, str_cat("\"", sanitize_line(name, 80),
                               "\" is no name: lower-case letters, digits and '-', at most ", limit,
                               "; shorten the job's"));
  }
  return absl::OkStatus();
}

// The template as an object whose parts have the types that we rely on.
absl::StatusOr<Json> read_template(const cluster::PodSpec& spec) {
  if (spec.pod_template.empty()) return Json::object();
  absl::StatusOr<Json> pod = parse_json(spec.pod_template);
  if (!pod.ok()) return wrong(spec, str_cat("its template: ", std::string(pod.status().message())));
  if (!pod->is_object()) return wrong(spec, "its template must be an object");
  for (const char* part : {"metadata", "spec"}) {
    const Json& value = at(*pod, {part});
    if (!value.is_null() && !value.is_object())
      return wrong(spec, str_cat("template.", part, " must be an object"));
  }
  const auto is_list = [](const Json& value) { return value.is_array() || value.is_null(); };
  for (const char* part : {"containers", "initContainers", "volumes"}) {
    if (!is_list(at(*pod, {"spec", part})))
      return wrong(spec, str_cat("template.spec.", part, " must be a list"));
  }
  for (const Json& container : list_at(*pod, {"spec", "containers"})) {
    if (container.is_object() && is_list(at(container, {"env"})) && is_list(at(container, {"volumeMounts"})))
      continue;
    return wrong(spec,
                 "template.spec.containers: each must be an object, and its env and volumeMounts lists");
  }
  return pod;
}

Json field_variable(const std::string& name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

bool has_gpu(const Json& container) {
  const Json& limits = at(container, {"resources", "limits"});
  if (!limits.is_object()) return false;
  return std::ranges::any_of(limits.items(), [](const auto& limit) {
    const Json& amount = limit.value();
    return api::is_gpu_limit(limit.key(), amount.is_string() ? amount.get<std::string>() : amount.dump());
  });
}

Json token_variable(const cluster::PodSpec& spec) {
  const Json key = {{"name", secret_name(spec.job, spec.job_uid)}, {"key", kTokenKey}};
  return {{"name", kTokenVariable}, {"valueFrom", {{"secretKeyRef", key}}}};
}

// The container runs as long as the pod's others do (Kubernetes 1.29), needs no rights, and leaves the pod in
// the class of service that its other containers are of.
Json steps_container(const cluster::PodSpec& spec, std::string_view image) {
  Json::array_t env;
  for (const auto& [name, value] : spec.env) {
    if (api::is_set_by_paceline(name) && name != kTokenVariable)
      env.push_back({{"name", name}, {"value", value}});
  }
  env.push_back(field_variable("PACELINE_POD_UID", "metadata.uid"));
  env.push_back({{"name", kStepsVariable}, {"value", kStepsAddress}});
  env.push_back(token_variable(spec));
  const Json resources = {{"cpu", "100m"}, {"memory", "128Mi"}};
  constexpr int kUser = 65532;  // the image's own
  return {{"name", kStepsContainer},
          {"image", image},
          {"command", Json::array({"paceline-worker", "--steps"})},
          {"restartPolicy", "Always"},
          {"env", std::move(env)},
          {"resources", {{"limits", resources}, {"requests", resources}}},
          {"securityContext",
           {{"allowPrivilegeEscalation", false},
            {"capabilities", {{"drop", Json::array({"ALL"})}}},
            {"readOnlyRootFilesystem", true},
            {"runAsNonRoot", true},
            {"runAsUser", kUser},
            {"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
}

// Ours come first, so that the template's may refer to them by $(NAME); what the template sets itself stays,
// but for the names that are ours alone.
Json container_environment(const cluster::PodSpec& spec, Json::array_t theirs, bool gpu) {
  std::erase_if(theirs, [](const Json& each) { return api::is_set_by_paceline(text_at(each, {"name"})); });
  const auto taken = [&](std::string_view name) {
    return std::ranges::any_of(theirs, [&](const Json& each) { return text_at(each, {"name"}) == name; });
  };
  Json::array_t all;
  for (const auto& [name, value] : spec.env) {
    if (taken(name) || name == kTokenVariable) continue;
    all.push_back({{"name", name}, {"value", value}});
  }
  // Who was given a GPU computes there or not at all.
  if (gpu && !taken(kDeviceVariable)) all.push_back({{"name", kDeviceVariable}, {"value", "cuda"}});
  all.push_back(field_variable("PACELINE_POD_UID", "metadata.uid"));
  all.push_back(field_variable("PACELINE_ADDRESS", "status.podIP"));
  if (spec.hears_steps) {
    all.push_back({{"name", kStepsVariable}, {"value", kStepsAddress}});
  } else if (spec.env.contains(kTokenVariable)) {
    all.push_back(token_variable(spec));
  }
  std::ranges::move(theirs, std::back_inserter(all));
  return all;
}

// Images may be read-only; models and checkpoints need a place. What the template mounts there is that place.
void add_work_folder(Json& pod_spec, Json& trainer) {
  for (const Json& mount : list_at(trainer, {"volumeMounts"})) {
    if (text_at(mount, {"mountPath"}) == kWorkFolder) return;
  }
  trainer["volumeMounts"].push_back({{"name", kWorkVolume}, {"mountPath", kWorkFolder}});
  for (const Json& volume : list_at(pod_spec, {"volumes"})) {
    if (text_at(volume, {"name"}) == kWorkVolume) return;
  }
  pod_spec["volumes"].push_back({{"name", kWorkVolume}, {"emptyDir", Json::object()}});
}

Json& object_in(Json& object, const char* name) {
  Json& found = object[name];
  if (!found.is_object()) found = Json(Json::value_t::object);
  return found;
}

// The template's own terms are alternatives, so each gets the node that is ruled out.
void keep_away(const std::string& node, Json& pod_spec) {
  Json& affinity = object_in(pod_spec, "affinity");
  Json& required =
      object_in(object_in(affinity, "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution");
  Json::array_t terms = list_at(required, {"nodeSelectorTerms"});
  if (terms.empty()) terms.emplace_back(Json::value_t::object);
  for (Json& term : terms) {
    if (!term.is_object()) continue;
    Json& fields = term["matchFields"];
    if (!fields.is_array()) fields = Json(Json::value_t::array);
    fields.push_back({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {node}}});
  }
  required["nodeSelectorTerms"] = std::move(terms);
}

// Beside the template's own preferences.
void prefer_others(const std::vector<std::string>& nodes, Json& pod_spec) {
  constexpr int kStrongest = 100;
  Json fields = Json::array();
  for (const std::string& node : nodes)
    fields.push_back({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {node}}});
  Json& preferred = object_in(object_in(pod_spec, "affinity"),
                              "nodeAffinity")["preferredDuringSchedulingIgnoredDuringExecution"];
  if (!preferred.is_array()) preferred = Json::array();
  preferred.push_back({{"weight", kStrongest}, {"preference", {{"matchFields", std::move(fields)}}}});
}

void add_to_trainer(const cluster::PodSpec& spec, std::string_view image, Json& container) {
  if (text_at(container, {"name"}).empty()) container["name"] = kTrainerContainer;
  if (text_at(container, {"image"}).empty() && !image.empty()) container["image"] = image;
  if (!spec.command.empty()) {
    container["command"] = spec.command;
    container.erase("args");  // they are in it
  }
  container["env"] = container_environment(spec, list_at(container, {"env"}), has_gpu(container));
  if (!container.contains("terminationMessagePolicy")) {
    container["terminationMessagePolicy"] = "FallbackToLogsOnError";
  }
}

}  // namespace

std::string host_name(const cluster::PodSpec& spec) {
  return str_cat(spec.job, "-", role_name(spec.role), "-", spec.index);
}

std::string service_name(std::string_view job) {
  return std::string(job);
}

std::string secret_name(std::string_view job, std::string_view job_uid) {
  return str_cat(job, "-token", job_uid.empty() ? "" : "-", job_uid);
}

absl::StatusOr<Json> pod_manifest(const cluster::PodSpec& spec, std::string_view image) {
  PL_RETURN_IF_ERROR(check_names(spec));
  if (spec.command.empty() && spec.pod_template.empty())
    return wrong(spec, "it has neither command nor template");
  PL_ASSIGN_OR_RETURN(const Json given, read_template(spec));

  Json metadata = metadata_of({spec.ns, spec.job, spec.job_uid}, spec.name);
  metadata["labels"][kRoleLabel] = role_name(spec.role);
  metadata["labels"][kIndexLabel] = std::to_string(spec.index);
  metadata["labels"][kAttemptLabel] = std::to_string(spec.attempt);
  for (const char* part : {"labels", "annotations"}) {
    const Json& theirs = at(given, {"metadata", part});
    if (!theirs.is_object()) continue;
    for (const auto& [key, value] : theirs.items()) {
      if (!metadata[part].contains(key)) metadata[part][key] = value;
    }
  }
  const Json& finalizers = at(given, {"metadata", "finalizers"});
  if (!finalizers.is_null()) metadata["finalizers"] = finalizers;

  Json pod_spec = at(given, {"spec"}).is_object() ? at(given, {"spec"}) : Json::object();
  if (list_at(pod_spec, {"containers"}).empty()) pod_spec["containers"] = Json::array({Json::object()});
  const std::string trainer = trainer_name(pod_spec);
  for (Json& container : pod_spec["containers"]) {
    if (text_at(container, {"name"}) != trainer) continue;
    add_to_trainer(spec, image, container);
    if (spec.env.contains(kTokenVariable) && !spec.hears_steps) add_work_folder(pod_spec, container);
    break;
  }
  if (spec.hears_steps) {
    if (image.empty())
      return wrong(spec, "spec.stragglers.toldByProgram: the controller has no image of trainers");
    Json::array_t before = list_at(pod_spec, {"initContainers"});
    before.insert(before.begin(), steps_container(spec, image));
    pod_spec["initContainers"] = std::move(before);
  }
  // What the template says of these stays.
  if (at(pod_spec, {"priorityClassName"}).is_null() && !spec.priority_class.empty())
    pod_spec["priorityClassName"] = spec.priority_class;
  if (at(pod_spec, {"terminationGracePeriodSeconds"}).is_null() && spec.save_grace > Duration::zero())
    pod_spec["terminationGracePeriodSeconds"] =
        std::chrono::ceil<std::chrono::seconds>(spec.save_grace).count();
  // No scheduler is asked where the template names the node.
  if (!spec.avoid_host.empty() && text_at(pod_spec, {"nodeName"}).empty()) {
    keep_away(spec.avoid_host, pod_spec);
    metadata["annotations"][kAvoidsAnnotation] = spec.avoid_host;
  }
  if (!spec.shunned_hosts.empty()) prefer_others(spec.shunned_hosts, pod_spec);
  pod_spec["restartPolicy"] = "Never";
  pod_spec["hostname"] = host_name(spec);
  pod_spec["subdomain"] = service_name(spec.job);
  return Json{{"apiVersion", kPods.api_version},
              {"kind", kPods.kind},
              {"metadata", std::move(metadata)},
              {"spec", std::move(pod_spec)}};
}

Json service_manifest(const Owner& owner) {
  Json service = child_manifest(kServices, owner, service_name(owner.job));
  service["spec"] = {
      {"clusterIP", "None"}, {"publishNotReadyAddresses", true}, {"selector", {{kJobNameLabel, owner.job}}}};
  return service;
}

bool selects_pods(const Json& service, std::string_view job) {
  const Json& selector = at(service, {"spec", "selector"});
  return text_at(selector, {kJobNameLabel}) == job &&
         std::ranges::none_of(kEarlierLabels, [&](const char* label) { return selector.contains(label); });
}

Json selecting_pods(std::string_view job, std::string_view resource_version) {
  Json selector = {{kJobNameLabel, job}};
  for (const char* label : kEarlierLabels) selector[label] = nullptr;
  return {{"metadata", {{"resourceVersion", resource_version}}}, {"spec", {{"selector", selector}}}};
}

Json secret_manifest(const Owner& owner, std::string_view token) {
  Json secret = child_manifest(kSecrets, owner, secret_name(owner.job, owner.uid));
  secret["type"] = "Opaque";
  secret["immutable"] = true;
  secret["stringData"] = {{kTokenKey, token}};
  return secret;
}

std::string owner_uid(const Json& object) {
  for (const Json& owner : list_at(object, {"metadata", "ownerReferences"})) {
    if (flag_at(owner, {"controller"}) && text_at(owner, {"kind"}) == kTrainingJobs.kind) {
      return text_at(owner, {"uid"});
    }
  }
  return "";
}

}  // namespace paceline::kube
