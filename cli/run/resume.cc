#include "cli/run/resume.h"

#include <filesystem>

#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/pluralize.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/state/resume_command.h"
#include "controller/api/checkpoint_step.h"
#include "controller/api/parse.h"
#include "controller/api/training_spec.h"
#include "runtime/checkpoint/spec_hash.h"

namespace paceline::cli {

namespace {

absl::StatusOr<v1::TrainingSpec> training_spec_of(const api::TrainingJob& job, const std::string& base_folder,
                                                  const std::string& run_folder) {
  return api::make_training_spec(job, {.base_folder = base_folder,
                                       .checkpoint_directory = run_folder + "/checkpoints",
                                       .model_directory = run_folder + "/model",
                                       .resume = true});
}

// The job.yaml in the run's folder says the job; none where that can't be read.
std::optional<api::TrainingJob> earlier_job(const RunState& earlier) {
  const std::string path = earlier.folder + "/job.yaml";
  const auto text = read_regular_file(path, api::kMaxFileBytes);
  if (!text.ok()) return std::nullopt;
  return api::parse_training_job(*text, path).job;
}

// What the job has changed since the checkpoint was made that it can't go on with, as far as the job.yaml
// beside it tells.
std::string changed_fields(const v1::TrainingSpec& now, const RunState& earlier, const std::string& hash) {
  const auto job = earlier_job(earlier);
  if (!job) return "";
  const auto before = training_spec_of(*job, earlier.folder, earlier.folder);
  if (!before.ok() || checkpoint::spec_hash(*before) != hash) return "";
  return absl::StrJoin(checkpoint::essential_differences(*before, now), ", ");
}

// It has noted none either: one that is gone is missed. Checkpoints in the job's place may be another run's.
bool has_none(const RunState& run, const JobFile& job) {
  if (!run.checkpoint.empty()) return false;
  const auto newest = newest_checkpoint(job, run.folder);
  if (!newest.ok()) return false;
  const std::string place = checkpoint_folder(run);
  if (place.empty()) return !*newest;
  const auto own = newest_in(place);
  return own.ok() && !*own;
}

}  // namespace

std::string checkpoint_folder(const JobFile& job, const std::string& run_folder) {
  const auto spec = training_spec_of(job.job, job.base_folder, run_folder);
  return spec.ok() ? spec->checkpoint().directory() : "";
}

std::string checkpoint_folder(const RunState& run) {
  using std::filesystem::path;
  if (!run.checkpoint.empty()) return path(run.checkpoint).parent_path().string();
  const auto job = earlier_job(run);
  if (!job) return "";
  const JobFile file{
      .job = *job, .text = "", .base_folder = path(run.job_file).parent_path().string(), .path = ""};
  const std::string folder = checkpoint_folder(file, run.folder);
  return path(folder).is_absolute() ? folder : "";
}

absl::StatusOr<std::optional<FoundCheckpoint>> newest_in(const std::string& folder) {
  if (folder.empty()) return std::nullopt;
  auto note = checkpoint::CheckpointStore(folder, 1).peek_latest();
  if (absl::IsNotFound(note.status())) return std::nullopt;
  if (absl::IsInvalidArgument(note.status()) || absl::IsUnavailable(note.status())) {
    return absl::FailedPreconditionError(
        str_cat(note.status().message(),
                "; put the folder with its checkpoints back, or remove what is in its place to begin anew"));
  }
  PL_RETURN_IF_ERROR(note.status());
  return FoundCheckpoint{str_cat(folder, "/", note->name), std::move(note->progress),
                         std::move(note->refused), note->bytes};
}

absl::Status check_readable(const FoundCheckpoint& newest) {
  if (newest.bytes > kMostRead) return absl::OkStatus();
  const std::string folder = std::filesystem::path(newest.path).parent_path().string();
  return checkpoint::CheckpointStore(folder, 1).load_latest().status();
}

absl::StatusOr<std::optional<FoundCheckpoint>> newest_checkpoint(const JobFile& job,
                                                                 const std::string& run_folder) {
  return newest_in(checkpoint_folder(job, run_folder));
}

RunToResume run_to_resume(const std::vector<RunState>& runs, const JobFile& job) {
  std::vector<std::string> passed;
  for (const RunState& run : runs) {
    if (is_finished(run) && has_none(run, job)) {
      passed.push_back(run.name);
      continue;
    }
    if (passed.empty()) return {run.name, ""};
    const bool one = passed.size() == 1;
    return {run.name,
            str_cat(one ? "run " : "runs ", absl::StrJoin(passed, ", "),
                    one ? " has no checkpoint and is" : " have no checkpoint and are", " passed over")};
  }
  return {runs.front().name, ""};
}

std::string workers_text(const RunState& earlier, const JobFile& job) {
  const auto before = earlier_job(earlier);
  if (!before) return "";
  const auto workers = [](const api::TrainingJob& of) {
    const auto& worker = of.spec.replica_specs.worker;
    return worker ? worker->replicas : 0;
  };
  const auto had = workers(*before), has = workers(job.job);
  if (had == has) return "";
  return str_cat("run ", earlier.name, " goes on with ", pluralize(has, "worker", "workers"), ", as ",
                 job.path, " says; it had ", had);
}

absl::Status check_resume(const RunState& earlier, const JobFile& job,
                          const std::optional<FoundCheckpoint>& newest, std::string_view where) {
  const api::TrainingJob& wanted = job.job;
  if (!earlier.job.empty() && earlier.job != wanted.metadata.name) {
    return absl::FailedPreconditionError(
        str_cat("run \"", earlier.name, "\" is of job \"", earlier.job, "\", and ", job.path, " is job \"",
                wanted.metadata.name, "\": resume it with its own, as in ", earlier.folder, "/job.yaml"));
  }
  // A place of the run's own is the new run's, too; any other has room for one run.
  const bool shares = newest && !wanted.spec.checkpoint.location.empty();
  const std::string anew = str_cat(shares ? "give another checkpoint.location, and " : "", "`paceline run ",
                                   shell_word(job.path), where, "` without --resume makes a new run");
  if (!newest) {
    if (const auto step = api::checkpoint_step(earlier.checkpoint)) {
      return absl::FailedPreconditionError(str_cat(
          "run \"", earlier.name, "\" had its checkpoint of step ", *step, " in ", checkpoint_folder(earlier),
          ", where none is now: put its checkpoints back (mount the file ",
          "system, if they are on one that is not mounted), or begin anew: ", anew));
    }
    if (earlier.phase != "Succeeded") return absl::OkStatus();
    return absl::FailedPreconditionError(
        str_cat("run \"", earlier.name, "\" has succeeded and has no checkpoint to go on from; ", anew));
  }
  // Files by their names in the job, wherever it lies: as those of the earlier one.
  PL_ASSIGN_OR_RETURN(const v1::TrainingSpec spec, training_spec_of(wanted, earlier.folder, earlier.folder));
  const std::string& hash = newest->progress.spec_hash;
  const std::string changed = changed_fields(spec, earlier, hash);
  if (!changed.empty() || checkpoint::spec_hash(spec) != hash) {
    return absl::FailedPreconditionError(str_cat(
        "run \"", earlier.name, "\" can't go on with ", job.path, ": its checkpoint ", newest->path,
        " was made with another ",
        changed.empty() ? "model, kind of optimizer, global batch, seed or precision" : changed,
        "; give it what it was made with, as in ", earlier.folder, "/job.yaml, or begin anew: ", anew));
  }
  const auto& steps = wanted.spec.training->steps;
  if (steps && *steps < newest->progress.step) {
    return absl::FailedPreconditionError(str_cat(
        "spec.training.steps ", *steps, " is less than the ", newest->progress.step, " steps that run \"",
        earlier.name, "\" has taken already (", newest->path, "); give more steps, or begin anew: ", anew));
  }
  return absl::OkStatus();
}

}  // namespace paceline::cli
