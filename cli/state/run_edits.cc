#include "cli/state/run_edits.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/state/resume_command.h"
#include "controller/api/parse.h"
#include "controller/api/print.h"

namespace paceline::cli {

namespace {

absl::StatusOr<api::TrainingJob> read_saved_job(const std::string& path) {
  PL_ASSIGN_OR_RETURN(const std::string text, read_regular_file(path, api::kMaxFileBytes));
  api::Parsed parsed = api::parse_training_job(text, path);
  if (parsed.job) return *std::move(parsed.job);
  return absl::FailedPreconditionError(str_cat(path, " is no TrainingJob"));
}

// Held until the descriptor is closed, or its process ends, however that ends.
absl::StatusOr<UniqueFd> lock_edits(const RunState& run) {
  const std::string path = run.folder + "/edit.lock";
  PL_ASSIGN_OR_RETURN(RegularFile file, open_regular_file(path, O_RDWR | O_CREAT));
  if (::flock(file.fd.get(), LOCK_EX | LOCK_NB) == 0) return std::move(file.fd);
  if (errno != EWOULDBLOCK) return errno_status(errno, str_cat("lock ", path));
  return absl::AbortedError(str_cat("another command edits run \"", run.name, "\" right now, and holds ",
                                    path, "; once it has ended, give this command again"));
}

}  // namespace

absl::Status goes_on(const RunState& run, const char* verb, std::string_view where) {
  if (!is_finished(run)) return absl::OkStatus();
  const bool may_go_on = run.phase != "Succeeded" && !run.checkpoint.empty() && !run.job_file.empty();
  return absl::FailedPreconditionError(
      str_cat("run \"", run.name, "\" has ended (", run.phase, "): there is nothing to ", verb,
              may_go_on ? str_cat("; `", resume_command("", run.job_file, run.name), where,
                                  "` goes on from its newest checkpoint")
                        : ""));
}

absl::Status edit_run(const RunStore& store, const std::string& name, const RunEdit& edit, const char* verb) {
  PL_ASSIGN_OR_RETURN(const RunState run, store.get(name));
  PL_RETURN_IF_ERROR(goes_on(run, verb, store.where()));
  PL_ASSIGN_OR_RETURN(const UniqueFd lock, lock_edits(run));
  const std::string path = run.folder + "/job.yaml";
  PL_ASSIGN_OR_RETURN(api::TrainingJob job, read_saved_job(path));
  bool& suspend = job.spec.run_policy.suspend;
  bool changes = std::exchange(suspend, edit.suspend.value_or(suspend)) != suspend;
  if (auto& worker = job.spec.replica_specs.worker; worker && edit.workers)
    changes |= std::exchange(worker->replicas, *edit.workers) != *edit.workers;
  for (const auto& [annotation, text] : edit.requests)
    changes |= std::exchange(job.metadata.annotations[annotation], text) != text;
  return changes ? write_file_atomically(path, api::print_yaml(job)) : absl::OkStatus();
}

std::optional<RunEdit> RunEdits::look() {
  const std::string path = folder_ + "/job.yaml";
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  const Seen found{info.st_ino, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
  if (found == seen_) return std::nullopt;
  const auto job = read_saved_job(path);
  if (!job.ok()) return std::nullopt;
  seen_ = found;
  RunEdit edit{.suspend = job->spec.run_policy.suspend};
  if (const auto& worker = job->spec.replica_specs.worker; worker) edit.workers = worker->replicas;
  for (const char* const annotation : {api::kCheckpointRequest, api::kReplaceRequest}) {
    const auto found = job->metadata.annotations.find(annotation);
    if (found != job->metadata.annotations.end()) edit.requests.insert(*found);
  }
  return edit;
}

}  // namespace paceline::cli
