#include "controller/cluster/kube/job_object.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::kube {

namespace {

constexpr std::size_t kMaxErrors = 20;
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

std::map<std::string, std::string> texts_of(const Json& json) {
  std::map<std::string, std::string> texts;
  if (!json.is_object()) return texts;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string() && key != kLastApplied) texts[key] = value.get<std::string>();
  }
  return texts;
}

}  // namespace

api::Metadata job_metadata(const Json& object) {
  api::Metadata metadata;
  metadata.name = text_at(object, {"metadata", "name"});
  metadata.ns = text_at(object, {"metadata", "namespace"});
  metadata.labels = texts_of(at(object, {"metadata", "labels"}));
  metadata.annotations = texts_of(at(object, {"metadata", "annotations"}));
  return metadata;
}

api::Parsed parse_job(const Json& object, const api::Metadata& metadata) {
  Json named = {{"name", metadata.name}, {"namespace", metadata.ns}};
  if (!metadata.labels.empty()) named["labels"] = metadata.labels;
  if (!metadata.annotations.empty()) named["annotations"] = metadata.annotations;
  // What the API server adds (managedFields, uid, ...) is no field of a user's file. Lines are broken because
  // the parser bounds them.
  const Json text = {{"apiVersion", api::kApiVersion},
                     {"kind", api::kKind},
                     {"metadata", std::move(named)},
                     {"spec", at(object, {"spec"})}};
  return api::parse_training_job(text.dump(1, ' ', false, Json::error_handler_t::replace), metadata.name);
}

std::string errors_of(const std::vector<api::Diagnostic>& diagnostics) {
  std::string text;
  std::size_t count = 0;
  for (const api::Diagnostic& each : diagnostics) {
    if (each.severity != api::Severity::kError || ++count > kMaxErrors) continue;
    text += str_cat(text.empty() ? "" : "; ", api::message(each));
  }
  if (count > kMaxErrors) text += str_cat("; and ", count - kMaxErrors, " more");
  return sanitize_line(text, kMaxSpecErrorBytes);
}

std::map<Role, std::string> pod_templates_of(const Json& object) {
  std::map<Role, std::string> templates;
  const Json& replicas = at(object, {"spec", "replicaSpecs"});
  if (!replicas.is_object()) return templates;
  for (const auto& [name, replica] : replicas.items()) {
    const std::optional<Role> role = role_named(name);
    const Json& pod = at(replica, {"template"});
    if (role && pod.is_object()) templates[*role] = dump(pod);
  }
  return templates;
}

}  // namespace paceline::kube
