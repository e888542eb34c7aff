#include "controller/jobs/api_error_text.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "controller/cluster/kube/api_error.h"

namespace paceline::jobs {

namespace {

using kube::Json;

constexpr std::size_t kMaxWordBytes = 2000;

std::string words_of(const absl::Status& status, const std::optional<Json>& object) {
  if (object && !kube::text_at(*object, {"message"}).empty())
    return kube::sanitize_line(kube::text_at(*object, {"message"}), kMaxWordBytes);
  return std::string(status.message());
}

std::string resource_text(const Asked& asked) {
  std::string text(asked.resource.plural);
  if (const std::size_t slash = asked.resource.api_version.find('/'); slash != std::string_view::npos)
    text += str_cat(".", asked.resource.api_version.substr(0, slash));
  return asked.subresource.empty() ? text : str_cat(text, "/", asked.subresource);
}

// One line for each thing that is wrong: "  spec.x: why".
std::string causes_of(const Json& object) {
  std::string text;
  for (const Json& cause : kube::list_at(object, {"details", "causes"})) {
    std::string field = kube::sanitize_line(kube::text_at(cause, {"field"}), 200);
    if (field.starts_with('.')) field.erase(0, 1);
    const std::string why = kube::sanitize_line(kube::text_at(cause, {"message"}), kMaxWordBytes);
    text += str_cat("\n  ", field, field.empty() || why.empty() ? "" : ": ", why);
  }
  return text;
}

bool is_conflict_of_managers(const Json& object) {
  return std::ranges::any_of(kube::list_at(object, {"details", "causes"}), [](const Json& cause) {
    return kube::text_at(cause, {"reason"}) == "FieldManagerConflict";
  });
}

std::string not_found(const std::string& words, const std::optional<Json>& object, const Asked& asked,
                      std::string_view cluster) {
  if (!object) {
    return str_cat("can't ", asked.what, ": ", cluster,
                   " knows no TrainingJobs: Paceline is not installed there (docs/kubernetes.md), "
                   "or it is not the cluster that you mean; --context chooses another");
  }
  if (kube::text_at(*object, {"details", "kind"}) == "namespaces") {
    return str_cat("can't ", asked.what, ": there is no namespace \"", asked.ns, "\" in ", cluster,
                   "; create it by kubectl create namespace ", asked.ns, ", or choose another by -n");
  }
  return str_cat("can't ", asked.what, ": ", words);
}

std::string aborted(const std::string& words, const std::optional<Json>& object, const Asked& asked) {
  if (object && is_conflict_of_managers(*object)) {
    return str_cat("can't ", asked.what,
                   ": others have set these fields to other values:", causes_of(*object),
                   "\nleave the fields out of the file, or take them over by --force-conflicts");
  }
  return str_cat("can't ", asked.what, ": somebody else changed it at the same time; try again (", words,
                 ")");
}

std::string message_of(const absl::Status& status, const Asked& asked, std::string_view cluster) {
  const auto object = kube::status_object_of(status);
  const std::string words = words_of(status, object);
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
      return str_cat("can't ", asked.what, ": ", cluster, " does not accept who you are: ", words,
                     "; log in again, or choose other credentials by --context or --kubeconfig");
    case absl::StatusCode::kPermissionDenied:
      return str_cat("you may not ", asked.what, ": ", words, "\nsee what you may: kubectl auth can-i ",
                     asked.verb, " ", resource_text(asked),
                     asked.ns.empty() ? " --all-namespaces" : str_cat(" -n ", asked.ns));
    case absl::StatusCode::kNotFound:
      return not_found(words, object, asked, cluster);
    case absl::StatusCode::kAborted:
      return aborted(words, object, asked);
    case absl::StatusCode::kInvalidArgument: {
      const std::string causes = object ? causes_of(*object) : "";
      return str_cat("can't ", asked.what,
                     ": the API server refuses it:", causes.empty() ? str_cat(" ", words) : causes);
    }
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      if (object)
        return str_cat("can't ", asked.what, ": the API server is overloaded or out of order; try again (",
                       words, ")");
      return str_cat("can't ", asked.what, ": no answer from ", cluster, ": ", words);
    default:
      return str_cat("can't ", asked.what, ": ", words);
  }
}

}  // namespace

absl::Status api_error_text(const absl::Status& status, const Asked& asked, std::string_view cluster) {
  if (status.ok() || absl::IsCancelled(status)) return status;
  absl::Status result(status.code(), message_of(status, asked, cluster));
  status.ForEachPayload([&](auto type, const absl::Cord& payload) { result.SetPayload(type, payload); });
  return result;
}

}  // namespace paceline::jobs
