// apply: server-side apply of what the user wrote, as field manager `paceline`.

#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/names.h"
#include "controller/api/edit.h"
#include "controller/cluster/kube/job_object.h"

namespace paceline::cli {

namespace {

using kube::Json;

// Which fields of the job that is there may not become what the file says, in the same words as everywhere.
std::string edits_refused(Call& call, const std::string& ns, const std::string& name, const Json& object) {
  const auto before = call.jobs.job(ns, name);
  if (!before.ok()) return "";
  const api::Parsed old_job = kube::parse_job(*before, kube::job_metadata(*before));
  api::Metadata metadata = kube::job_metadata(object);
  metadata.ns = ns;
  const api::Parsed new_job = kube::parse_job(object, metadata);
  if (!old_job.job || !new_job.job) return "";
  std::string text;
  for (const api::EditError& error : api::edit_errors(*old_job.job, *new_job.job))
    text += str_cat("\n  ", error.path, " ", error.problem);
  if (text.empty()) return "";
  return str_cat("\nof the job that is there:", text, "\ndelete it first (", call.program, " delete ", name,
                 " -n ", ns, "), or give this one another name");
}

// What is applied to an object that goes is gone with it a moment later.
absl::Status if_it_stays(Call& call, const std::string& ns, const std::string& name, const Json& object) {
  if (kube::text_at(object, {"metadata", "deletionTimestamp"}).empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      str_cat("job ", job_text(ns, name), " is being deleted, and what is applied to it goes with it; `",
              call.program, " delete ", name, " -n ", ns, "` waits until it is gone; then apply again"));
}

absl::Status apply_one(Call& call, const ApplyFile& file, const ApplyOptions& options) {
  PL_ASSIGN_OR_RETURN(Json object, kube::parse_json(file.object));
  const std::string name = kube::text_at(object, {"metadata", "name"});
  const std::string own_ns = kube::text_at(object, {"metadata", "namespace"});
  if (options.ns_given && !own_ns.empty() && own_ns != call.ns) {
    return absl::InvalidArgumentError(str_cat(file.path, ": metadata.namespace is \"", own_ns,
                                              "\", and -n says \"", call.ns,
                                              "\"; leave one of them out, or make them equal"));
  }
  const std::string ns = own_ns.empty() ? call.ns : own_ns;
  // What a cluster writes itself: a file that came out of `get -o yaml` can be applied too.
  object.erase("status");
  for (const char* field : {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})
    object["metadata"].erase(field);
  object["metadata"]["namespace"] = ns;
  auto applied = call.client->apply(ns, name, object, options.force, options.dry_run);
  if (absl::IsInvalidArgument(applied.status())) {
    return absl::InvalidArgumentError(
        str_cat(file.path, ": ", applied.status().message(), edits_refused(call, ns, name, object)));
  }
  if (!applied.ok()) return with_context(applied.status(), file.path);
  PL_RETURN_IF_ERROR(with_context(if_it_stays(call, ns, name, applied->object), file.path));
  call.out << resource_name(name) << " " << applied->what << (options.dry_run ? " (server dry run)" : "")
           << "\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status apply_jobs(Call& call, const std::vector<ApplyFile>& files, const ApplyOptions& options) {
  absl::Status first;
  for (const ApplyFile& file : files) {
    const absl::Status status = apply_one(call, file, options);
    if (!status.ok() && !first.ok()) call.err << call.program << ": " << status.message() << "\n";
    first.Update(status);
  }
  return first;
}

}  // namespace paceline::cli
