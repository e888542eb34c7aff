#include "cli/generate/source.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands/job_file.h"
#include "controller/api/training_spec.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/file_store.h"
#include "runtime/checkpoint/layout.h"
#include "runtime/checkpoint/safetensors_file.h"

namespace paceline::cli {

namespace {

using generate::LoadedWeights;
namespace fs = std::filesystem;

constexpr char kJobFile[] = "job.yaml";

absl::Status check_options(const SourceOptions& options) {
  const bool folder = !options.checkpoint.empty() || !options.model.empty();
  if (!options.checkpoint.empty() && !options.model.empty())
    return absl::InvalidArgumentError("give --checkpoint or --model, not both");
  if (!options.run.empty() && folder) {
    return absl::InvalidArgumentError(str_cat("RUN \"", options.run, "\" says whose weights, and so does ",
                                              options.model.empty() ? "--checkpoint" : "--model",
                                              ": leave one of them out"));
  }
  if (!options.job.empty() && !folder)
    return absl::InvalidArgumentError("--job says whose a --checkpoint or a --model is: give one of them");
  return absl::OkStatus();
}

// The job's, with its relative paths as they were for its run. `whose`: of the run, or the file, for errors.
absl::Status take_job(const std::string& path, const std::string& whose, const std::string& base_folder,
                      const std::string& run_folder, std::ostream& notes, Source& source) {
  PL_ASSIGN_OR_RETURN(const JobFile file, load_job_file(path, notes));
  if (!file.job.spec.training)
    return absl::InvalidArgumentError(
        str_cat(whose, ": spec.training is missing: it says nothing of a model"));
  const api::ModelType type = file.job.spec.training->model.type;
  if (type != api::ModelType::kGpt) {
    return absl::InvalidArgumentError(str_cat(whose, ": its model is of type ", api::name(type),
                                              "; only what a gpt has learnt can be gone on with"));
  }
  source.job = file.job.metadata.name;
  PL_ASSIGN_OR_RETURN(
      source.spec,
      api::make_training_spec(file.job, {.base_folder = base_folder.empty() ? file.base_folder : base_folder,
                                         .checkpoint_directory = str_cat(run_folder, "/checkpoints"),
                                         .model_directory = str_cat(run_folder, "/model")}));
  return absl::OkStatus();
}

std::string job_file_of(const RunState& run) {
  return str_cat(run.folder, "/", kJobFile);
}

absl::StatusOr<bool> is_of_a_gpt(const RunState& run) {
  std::ostringstream unheard;
  if (absl::IsInvalidArgument(open_regular_file(job_file_of(run)).status())) return false;
  const auto file = load_job_file(job_file_of(run), unheard);
  if (absl::IsResourceExhausted(file.status()) || absl::IsPermissionDenied(file.status()))
    return file.status();  // nobody knows
  return file.ok() && file->job.spec.training && file->job.spec.training->model.type == api::ModelType::kGpt;
}

// The newest that goes on, else the newest, as RunStore::choose does, of those whose model is a gpt.
absl::StatusOr<RunState> newest_of_a_gpt(const RunStore& store) {
  std::vector<absl::Status> left_out;
  PL_ASSIGN_OR_RETURN(std::vector<RunState> runs, store.list(&left_out));
  if (runs.empty()) return store.choose("");  // has the words for that
  const std::string newest = runs.front().name;
  std::stable_partition(runs.begin(), runs.end(), [](const RunState& run) { return !is_finished(run); });
  for (RunState& run : runs) {
    PL_ASSIGN_OR_RETURN(const bool of_a_gpt, is_of_a_gpt(run));
    if (of_a_gpt) return std::move(run);
  }
  return absl::NotFoundError(
      str_cat("no run in ", store.state_folder(), " is of a gpt, nor is the newest, \"", newest,
              "\"; only what a gpt has learnt can be gone on with", left_out.empty() ? "" : "; ",
              left_out.empty() ? "" : left_out.front().message()));
}

// Of who may not look, nothing is known of what there is.
absl::Status refused(const std::error_code& error, const fs::path& path) {
  return error == std::errc::permission_denied
             ? errno_status(error.value(), str_cat("look at ", path.string()))
             : absl::OkStatus();
}

// The job.yaml of the run that `path` is a part of: <run>/checkpoints/step-N, <run>/model/model.safetensors.
absl::StatusOr<std::string> job_of(const fs::path& path, const char* option) {
  fs::path folder = path;
  for (int up = 0; up < 3; ++up, folder = folder.parent_path()) {
    std::error_code error;
    const fs::path job = folder / kJobFile;
    if (fs::is_regular_file(job, error)) return job.string();
    PL_RETURN_IF_ERROR(refused(error, job));
  }
  return absl::InvalidArgumentError(str_cat(option, ": there is no ", kJobFile, " of a run in ",
                                            path.string(),
                                            " or the two folders above: say whose it is by --job FILE"));
}

// What is meant by a run's folder, which has both; else `path`.
fs::path part_of_run(const fs::path& path, bool model) {
  const fs::path part = path / (model ? "model" : "checkpoints");
  std::error_code error;
  return fs::is_regular_file(path / checkpoint::kModelFile, error) || !fs::is_directory(part, error) ? path
                                                                                                     : part;
}

absl::StatusOr<Source> open_folder(const SourceOptions& options, const checkpoint::GoOn& go_on,
                                   std::ostream& notes) {
  const bool model = !options.model.empty();
  std::error_code error;
  fs::path path = fs::absolute(model ? options.model : options.checkpoint, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a slash at its end
  const char* const option = model ? "--model" : "--checkpoint";
  const bool exists = fs::exists(path, error);
  PL_RETURN_IF_ERROR(refused(error, path));
  if (!exists)
    return absl::NotFoundError(str_cat(option, ": no such file: ", path.string(),
                                       "; of a run's newest weights give its name alone"));
  path = part_of_run(path, model);
  std::string job = options.job;
  if (job.empty()) {
    PL_ASSIGN_OR_RETURN(job, job_of(path, option));
  }
  Source source;
  PL_RETURN_IF_ERROR(take_job(job, job, "", path.string(), notes, source));
  const auto files = checkpoint::make_directory_store();
  if (model) {
    PL_ASSIGN_OR_RETURN(source.weights,
                        generate::read_model(*files, path.string(), source.spec.model().gpt()));
  } else {
    PL_ASSIGN_OR_RETURN(source.weights, generate::read_checkpoint(*files, path.string(), source.spec, go_on));
  }
  return source;
}

// Of the checkpoints that are damaged those that may be newer than a model of this step, and how.
std::vector<std::string> passed_over(const checkpoint::CheckpointStore& store,
                                     const absl::StatusOr<checkpoint::CheckpointNote>& newest,
                                     std::int64_t step) {
  const auto is_older = [step](std::string_view name) {
    const std::int64_t its = checkpoint::step_of(name);
    return its >= 0 && its <= step;
  };
  if (newest.ok()) {
    std::vector<std::string> refused = newest->refused;
    std::erase_if(refused, [&](const std::string& why) { return is_older(why.substr(0, why.find(':'))); });
    return refused;
  }
  const auto name = store.newest();
  if (absl::IsNotFound(newest.status()) || (name.ok() && is_older(*name))) return {};
  return {std::string(newest.status().message())};
}

absl::Status nothing_saved(const RunState& run, const v1::CheckpointSpec& checkpoint) {
  const bool goes_on = !is_finished(run);
  std::string why;
  if (checkpoint.every_steps() == 0 && checkpoint.every_seconds() == 0) {
    why = str_cat("; its job has no spec.checkpoint", goes_on ? ", and has saved nothing before its end" : "",
                  ": `checkpoint: {everySteps: 250}` below spec makes checkpoints");
  } else if (goes_on) {
    why = "; one is made when spec.checkpoint says so, and the model at the end";
  }
  return absl::NotFoundError(str_cat("run \"", run.name, "\" has no model and no checkpoint in ",
                                     checkpoint.directory(), goes_on ? " yet" : "", " (step ", run.progress.step, ")",
                                     why));
}

absl::StatusOr<Source> open_run(const Session& session, const std::string& name,
                                const checkpoint::GoOn& go_on, std::ostream& notes) {
  PL_ASSIGN_OR_RETURN(const RunStore store, session.store());
  PL_ASSIGN_OR_RETURN(const RunState run, name.empty() ? newest_of_a_gpt(store) : store.get(name));
  Source source;
  source.run = run.name;
  PL_RETURN_IF_ERROR(open_regular_file(job_file_of(run)).status());
  PL_RETURN_IF_ERROR(take_job(job_file_of(run), str_cat("run \"", run.name, "\""),
                              fs::path(run.job_file).parent_path().string(), run.folder, notes, source));
  const auto files = checkpoint::make_directory_store();
  auto model = generate::read_model(*files, str_cat(run.folder, "/model"), source.spec.model().gpt());
  if (!model.ok() && !absl::IsNotFound(model.status())) return model.status();
  // A run that was resumed may have gone on from its model.
  const std::string& folder = source.spec.checkpoint().directory();
  const checkpoint::CheckpointStore checkpoints(*files, folder, 1);
  const auto newest = checkpoints.peek_latest();
  const auto unread = [&](const absl::Status& why) {
    return model.ok() ? absl::Status(why.code(), str_cat(why.message(), "; --model ", run.folder,
                                                         "/model takes the run's model, which may be older"))
                      : why;
  };
  if (checkpoint::is_no_fault_of_it(newest.status())) return unread(newest.status());
  if (model.ok() && !(newest.ok() && newest->progress.step > model->step)) {
    source.weights = *std::move(model);
    source.weights.refused = passed_over(checkpoints, newest, source.weights.step);
    return source;
  }
  if (absl::IsNotFound(newest.status())) {
    return nothing_saved(run, source.spec.checkpoint());
  }
  auto read = generate::read_checkpoint(*files, folder, source.spec, go_on);
  if (absl::IsCancelled(read.status())) return read.status();
  if (checkpoint::is_no_fault_of_it(read.status())) return unread(read.status());
  if (!model.ok() || (read.ok() && read->step > model->step)) {
    PL_ASSIGN_OR_RETURN(source.weights, std::move(read));
    return source;
  }
  // What seemed newer than the model is damaged.
  source.weights = *std::move(model);
  source.weights.refused =
      read.ok() ? std::move(read->refused) : std::vector{std::string(read.status().message())};
  return source;
}

}  // namespace

absl::StatusOr<Source> open_source(const Session& session, const SourceOptions& options,
                                   const checkpoint::GoOn& go_on, std::ostream& notes) {
  PL_RETURN_IF_ERROR(check_options(options));
  if (!options.checkpoint.empty() || !options.model.empty()) return open_folder(options, go_on, notes);
  return open_run(session, options.run, go_on, notes);
}

}  // namespace paceline::cli
