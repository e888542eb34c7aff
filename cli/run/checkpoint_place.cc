#include "cli/run/checkpoint_place.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/pluralize.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/state/resume_command.h"
#include "controller/api/checkpoint_step.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 20;

bool is_same_folder(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code missing;
  return (a / "").lexically_normal() == (b / "").lexically_normal() ||
         std::filesystem::equivalent(a, b, missing);
}

// A manifest has its state's checksum: no other training writes the same one.
bool has_same_manifest(const FoundCheckpoint& a, const FoundCheckpoint& b) {
  const auto text = read_regular_file(a.path + "/manifest.json", kMaxManifestBytes);
  const auto other = read_regular_file(b.path + "/manifest.json", kMaxManifestBytes);
  return text.ok() && other.ok() && *text == *other;
}

// Two places, and what is in them.
struct Move {
  const RunState& run;
  std::string from, to;
  std::optional<FoundCheckpoint> left;           // the newest in `from`, unless the run has noted a newer one
  const std::optional<FoundCheckpoint>& newest;  // in `to`
  Step last = -1;                                // the run's newest, wherever it is; -1: it has none
  const RunState* other = nullptr;               // has saved in `to`

  bool is_done() const {
    if (!newest) return last < 0;
    if (left) return has_same_manifest(*left, *newest);
    const Step step = newest->progress.step;
    // An owner that was lost may have noted fewer than it saved.
    if (step > last && is_same_folder(to, run.folder + "/checkpoints")) return true;
    return step == last && other == nullptr;
  }

  std::string what_is_there() const {
    if (!newest) return "where none is";
    return str_cat("where the newest is step ", newest->progress.step,
                   other == nullptr ? ", which is not this one" : str_cat(", of run \"", other->name, "\""));
  }

  std::string what_to_do() const {
    const std::string name_it = str_cat("set spec.checkpoint.location to ", from);
    if (left && !newest)
      return str_cat("copy the folder (cp -r ", shell_word(from), "/. ", shell_word(to), ") or ", name_it);
    if (left)
      return str_cat(name_it, ", or to an empty folder with a copy of it (cp -r ", shell_word(from),
                     "/. FOLDER)");
    if (last >= 0)
      return str_cat("put the run's checkpoints back there and ", name_it,
                     ", or begin anew without --resume");
    return "set spec.checkpoint.location to an empty folder";
  }
};

std::size_t count_checkpoints(const std::string& folder) {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (api::checkpoint_step(entry->path().string()) &&
        std::filesystem::exists(entry->path() / "manifest.json", error))
      ++count;
  }
  return count;
}

}  // namespace

const RunState* run_that_saved_in(const std::vector<RunState>& runs, const std::string& folder) {
  const auto found = std::ranges::find_if(runs, [&](const RunState& run) {
    return !run.checkpoint.empty() && is_same_folder(checkpoint_folder(run), folder);
  });
  return found == runs.end() ? nullptr : &*found;
}

const RunState* run_that_saves_in(const std::vector<RunState>& runs, const std::string& folder) {
  const auto found = std::ranges::find_if(runs, [&](const RunState& run) {
    return !is_finished(run) && is_same_folder(checkpoint_folder(run), folder);
  });
  return found == runs.end() ? nullptr : &*found;
}

// Members would refuse it, too, but only the first ones: those that take their places go on from what is
// there.
absl::Status check_is_empty(const std::string& folder, const JobFile& job, const std::vector<RunState>& runs,
                            std::string_view where) {
  const auto newest = newest_in(folder);
  if (!newest.ok() || !*newest) return absl::OkStatus();  // what can't be read members tell best
  const RunState* const run = run_that_saved_in(runs, folder);
  const bool is_same_job = run != nullptr && run->job == job.job.metadata.name;
  const std::string what_to_do =
      run == nullptr ? str_cat("no run that is still there made them: ",
                               holds_orphans(job, runs)
                                   ? str_cat("`paceline run ", shell_word(job.path), " --resume", where,
                                             "` makes a new run that goes on from them; or remove them, or ")
                                   : std::string("remove them, or "))
      : is_same_job && !check_resume(*run, job, *newest, where).ok()
          ? str_cat("they are of run \"", run->name, "\", which can't go on with ", job.path, ": ")
          : str_cat("they are of run \"", run->name, "\", which `",
                    resume_command("", is_same_job ? job.path : run->job_file, run->name), where,
                    "` goes on with: do that, or ");
  return absl::FailedPreconditionError(str_cat(folder, " holds checkpoints of an earlier training, ",
                                               std::filesystem::path((*newest)->path).filename().string(),
                                               " the newest; ", what_to_do,
                                               "give another checkpoint.location"));
}

bool holds_orphans(const JobFile& job, const std::vector<RunState>& runs) {
  if (job.job.spec.checkpoint.location.empty()) return false;
  const std::string folder = checkpoint_folder(job, "");
  const auto newest = newest_in(folder);
  return !(newest.ok() && !*newest) && run_that_saved_in(runs, folder) == nullptr &&
         std::ranges::find(runs, job.job.metadata.name, &RunState::job) == runs.end();
}

std::string left_checkpoints_text(const RunState& run, const std::vector<RunState>& runs) {
  const std::string folder = checkpoint_folder(run);
  if (folder.empty() || is_same_folder(folder, run.folder + "/checkpoints")) return "";
  const std::size_t count = count_checkpoints(folder);
  if (count == 0) return "";
  const auto order = [](const RunState& each) { return std::tuple(!each.checkpoint.empty(), each.created); };
  const RunState* owner = &run;
  for (const RunState& each : runs) {
    if (order(each) > order(*owner) && is_same_folder(checkpoint_folder(each), folder)) owner = &each;
  }
  const std::string checkpoints = pluralize(count, "checkpoint", "checkpoints");
  if (owner == &run) return str_cat("run \"", run.name, "\" leaves ", checkpoints, " in ", folder);
  return str_cat("run \"", run.name, "\" leaves no checkpoint: the ", checkpoints, " in ", folder,
                 count == 1 ? " is" : " are", " of run \"", owner->name, "\"");
}

absl::Status check_place(const RunState& earlier, const JobFile& job,
                         const std::optional<FoundCheckpoint>& newest, const std::vector<RunState>& runs) {
  Move move{.run = earlier,
            .from = checkpoint_folder(earlier),
            .to = checkpoint_folder(job, earlier.folder),
            .left = {},
            .newest = newest};
  if (move.from.empty() || is_same_folder(move.from, move.to)) return absl::OkStatus();
  auto left = newest_in(move.from);
  move.last = api::checkpoint_step(earlier.checkpoint).value_or(-1);
  if (!left.ok() && move.last < 0)
    return with_context(left.status(), str_cat("run \"", earlier.name, "\" can't go on"));
  if (left.ok() && *left && (*left)->progress.step >= move.last) {
    move.last = (*left)->progress.step;
    move.left = *std::move(left);
  }
  std::vector<RunState> others = runs;
  std::erase_if(others, [&](const RunState& run) { return run.name == earlier.name; });
  move.other = run_that_saved_in(others, move.to);
  if (move.is_done()) return absl::OkStatus();
  const std::string has = move.last < 0 ? " has no checkpoint"
                                        : str_cat(" has step ", move.last, " in ", move.from,
                                                  move.left ? "" : ", where it can't be found any more");
  return absl::FailedPreconditionError(str_cat("run \"", earlier.name, "\"", has, ", and ", job.path,
                                               " names ", move.to, ", ", move.what_is_there(), "; ",
                                               move.what_to_do()));
}

}  // namespace paceline::cli
