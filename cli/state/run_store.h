#pragma once

// The state folder: one sub-folder per local run.
//
//   <state>/runs/<run>/lock            locked by the `paceline run` that owns the run, for as long as
//   it lives
//                      job.yaml        the TrainingJob as it was given
//                      status.json     RunState; replaced atomically
//                      metrics.jsonl   docs/metrics.md
//                      events.jsonl    what happened, one object a line
//                      logs/ pods/ checkpoints/ model/
//
// A run whose lock is free while its status says that it goes on, or is not there, has lost its owner (kill
// -9, power); list() and get() report it as Failed with the reason OwnerLost. Where its status is damaged
// they report it with the phase Unknown and the reason StatusDamaged. Any number of processes may use one
// state folder at once. Errors are absl::Status with the path.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "cli/state/run_state.h"

namespace paceline::cli {

// A run that this process owns. Thread-safe.
class OwnedRun {
 public:
  const std::string& name() const { return name_; }
  const std::string& folder() const { return folder_; }
  std::string path(std::string_view file) const { return folder_ + "/" + std::string(file); }

  // Replaces status.json. `durable`: also survives a crash of the machine (slower; for the last one).
  absl::Status write_state(const RunState& state, bool durable) const;
  // The last, durable one: also on a full disk, because room was kept for it.
  absl::Status write_last_state(const RunState& state) const;
  // Keeps room for the last state; a new run has it. Until drop_reserve(), or the last state.
  absl::Status make_reserve() const;
  void drop_reserve() const;
  // Removes the run's folder: one that could not begin leaves nothing.
  void discard() const;

 private:
  friend class RunStore;
  OwnedRun(std::string name, std::string folder, UniqueFd lock)
      : name_(std::move(name)), folder_(std::move(folder)), lock_(std::move(lock)) {}
  std::string name_, folder_;
  UniqueFd lock_;
};

class RunStore {
 public:
  // `option`: --state-dir as its user gave it, for the commands that messages name; empty: it was not given.
  explicit RunStore(std::string state_folder, std::string option = "")
      : folder_(std::move(state_folder)), option_(std::move(option)) {}

  // A new run named `name`, or `name`-2, -3, ... where that is taken (at most kMaxRunsPerName).
  // INVALID_ARGUMENT: a name that is no file's, or not printable UTF-8.
  absl::StatusOr<std::unique_ptr<OwnedRun>> create(const std::string& name) const;
  // A new run with a name that its user chose: exactly that. INVALID_ARGUMENT: not 1 to kMaxNameBytes
  // letters, digits, '-', '_' and '.', the first a letter or digit. ALREADY_EXISTS: it is taken.
  absl::StatusOr<std::unique_ptr<OwnedRun>> create_named(const std::string& name) const;
  // Takes over a run that nobody owns, to resume it, and changes nothing of it. NOT_FOUND,
  // FAILED_PRECONDITION (somebody owns it).
  absl::StatusOr<std::unique_ptr<OwnedRun>> reopen(const std::string& name) const;

  // All runs, newest first. Folders that are no run's (no status, or one that is none and no lock) are
  // skipped. `left_out`, unless null, gets why others are not among them: they can't be read, or can't be
  // named. RESOURCE_EXHAUSTED: no file descriptor to look at one; nothing is said of any.
  absl::StatusOr<std::vector<RunState>> list(std::vector<absl::Status>* left_out = nullptr) const;
  // NOT_FOUND names the runs that there are, or says what a folder of that name lacks. FAILED_PRECONDITION:
  // there is one whose name can't be a run's. Others: it can't be read.
  absl::StatusOr<RunState> get(const std::string& name) const;
  // The run of that name; where it is empty, the newest that goes on, else the newest, of those that can be
  // read. NOT_FOUND: there is none, read or not.
  absl::StatusOr<RunState> choose(const std::string& name) const;
  // The runs of the job `job`, of those that can be read: at least one, the newest first. NOT_FOUND.
  absl::StatusOr<std::vector<RunState>> runs_of(const std::string& job) const;
  // Removes a finished run's folder. FAILED_PRECONDITION while it is owned. An error names what is left; it
  // stays a run then, so that it can be removed again.
  absl::Status remove(const std::string& name) const;

  const std::string& state_folder() const { return folder_; }
  // The words behind a run's name in commands: " --state-dir FOLDER" where its user gave one.
  std::string where() const;

  static constexpr int kMaxRunsPerName = 10000;
  static constexpr std::size_t kMaxNameBytes = 63;

 private:
  absl::StatusOr<std::unique_ptr<OwnedRun>> make(const std::string& name) const;
  std::string runs() const { return folder_ + "/runs"; }
  // FAILED_PRECONDITION, with what to do: another process holds it.
  absl::StatusOr<UniqueFd> lock(const RunState& run) const;
  absl::StatusOr<RunState> read(const std::string& name) const;
  static RunState with_owner(RunState state);
  static RunState with_age(RunState state);
  RunState without_owner(RunState state) const;
  RunState without_status(RunState state, const absl::Status& why) const;
  std::string how_it_goes_on_without_owner(const RunState& state) const;
  std::string how_it_goes_on(const RunState& state) const;
  absl::Status no_name(const std::string& name) const;
  std::string folder_, option_;
};

// --state-dir, else $XDG_STATE_HOME/paceline, else $HOME/.local/state/paceline. FAILED_PRECONDITION where
// none is set.
absl::StatusOr<std::string> state_folder(const std::string& option, const char* xdg_state_home,
                                         const char* home);

}  // namespace paceline::cli
