#include "cli/cluster/job_client.h"

#include <algorithm>
#include <tuple>

#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/job_view.h"
#include "cli/cluster/names.h"

namespace paceline::cli {

using kube::Json;

absl::StatusOr<Json> JobClient::choose(const std::string& ns, const std::string& name) {
  if (!name.empty()) return job(ns, name);
  PL_ASSIGN_OR_RETURN(const Listed listed, list_jobs(ns));
  if (listed.objects.empty())
    return absl::NotFoundError(
        str_cat("namespace ", ns, " has no jobs; -n chooses another namespace, -A with get lists all"));
  const auto rank = [](const Json& object) {
    const JobView view = read_job(object);
    return std::tuple(!has_ended(view), view.created.value_or(WallTime()), view.name);
  };
  return *std::ranges::max_element(listed.objects, {}, rank);
}

std::string JobClient::reference(const std::string& name) const {
  return resource_name(name);
}

std::string JobClient::where(const std::string& ns) const {
  return str_cat(" -n ", ns);
}

std::string JobClient::none(const std::string& ns, const std::string& program) const {
  return str_cat(ns.empty() ? "No jobs in any namespace." : str_cat("No jobs in namespace ", ns, "."),
                 " Start one with `", program, " apply -f job.yaml`.");
}

absl::StatusOr<JobClient::Applied> JobClient::apply(const std::string& ns, const std::string& name,
                                                    const Json& object, bool force, bool dry_run) {
  const Asked asked{.what = str_cat("apply job ", job_text(ns, name)), .verb = "patch", .ns = ns};
  const auto before = api().get(kube::kTrainingJobs, ns,
                                name);  // only to say what happened; whoever may not read may still write
  auto applied = api().apply(kube::kTrainingJobs, ns, name, "", object,
                             {.field_manager = kFieldManager, .force = force, .dry_run = dry_run});
  if (!applied.ok()) return plain(applied.status(), asked);
  const bool is_new = absl::IsNotFound(before.status());
  const auto version = [](const Json& json) {
    return std::tuple(kube::text_at(json, {"metadata", "uid"}),
                      kube::text_at(json, {"metadata", "resourceVersion"}));
  };
  const bool same = before.ok() && (dry_run ? kube::at(*before, {"spec"}) == kube::at(*applied, {"spec"})
                                            : version(*before) == version(*applied));
  return Applied{*std::move(applied), is_new ? "created" : same ? "unchanged" : "configured"};
}

absl::StatusOr<bool> JobClient::exists(const std::string& ns, const std::string& name,
                                       const std::string& uid) {
  const auto object = api().get(kube::kTrainingJobs, ns, name);
  if (absl::IsNotFound(object.status())) return false;
  if (!object.ok())
    return plain(object.status(), {.what = str_cat("get job ", job_text(ns, name)), .verb = "get", .ns = ns});
  return kube::text_at(*object, {"metadata", "uid"}) == uid;
}

}  // namespace paceline::cli
