#pragma once

// What is known about one local run: what the live view draws, what `get`, `describe` and `top` print, and
// what the run's folder keeps as status.json. A value; pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fields.h"
#include "base/telemetry.h"
#include "controller/api/types.h"

namespace paceline::cli {

// Of a step of servers that wait for the first gradients only.
struct StepGradients {
  std::int64_t counted = 0, workers = 0;  // the first so many of theirs
  double samples = 0;                     // that count in a step, as a mean
  std::int64_t batch = 0;                 // globalBatchSize

  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"counted"}, x.counted);
    visit(NamedField{"workers"}, x.workers);
    visit(NamedField{"samples"}, x.samples);
    visit(NamedField{"batch"}, x.batch);
  }
};

struct RunState {
  std::string name;  // of the run: its folder's name
  std::string job;   // of the TrainingJob
  std::string ns = "default";
  std::string job_file;           // as given on the command line, absolute
  std::string phase = "Pending";  // Pending, Starting, Running, Succeeded, Failed, Stopped, Unknown
  std::string reason;             // CamelCase
  std::string message;            // the whole error where it failed
  std::int64_t owner_pid = 0;     // of the `paceline run` that owns it

  std::uint64_t generation = 0;
  api::Progress progress;  // its speed: over a sliding window; the mean once finished
  std::string target;      // "accuracy >= 0.9", or empty
  bool target_reached = false;
  double elapsed_seconds = 0;                                // since the start of the run
  std::optional<double> first_step_seconds, target_seconds;  // since the start of the run
  std::optional<StepGradients> gradients;                    // absent: everybody's count
  std::int64_t samples = 0;
  std::uint64_t parameters = 0;
  std::string device;                     // what its members compute on, "NVIDIA H200"; empty: not known yet
  std::uint64_t bytes_exchanged = 0;      // sent, all members
  std::int64_t weights_checked_step = 0;  // the newest whose weights were seen equal on all ranks; 0: none

  std::string checkpoint, model;           // paths, empty: none
  std::string folder;                      // the run's
  std::string created, finished;           // RFC 3339
  std::string written;                     // likewise: when its owner wrote this, by the owner's clock
  std::vector<api::MemberStatus> members;  // phases: their own words, or pending, silent, lost, left, gone
  api::Status status;                      // the job's, as a cluster's API server has it

  // But for `status`.
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"name"}, x.name);
    visit(NamedField{"job"}, x.job);
    visit(NamedField{"namespace"}, x.ns);
    visit(NamedField{"jobFile"}, x.job_file);
    visit(NamedField{"phase"}, x.phase);
    visit(NamedField{"reason"}, x.reason);
    visit(NamedField{"message"}, x.message);
    visit(NamedField{"ownerPid"}, x.owner_pid);
    visit(NamedField{"generation"}, x.generation);
    api::Progress::fields(visit, x.progress);
    visit(NamedField{"target"}, x.target);
    visit(NamedField{"targetReached"}, x.target_reached);
    visit(NamedField{"elapsedSeconds"}, x.elapsed_seconds);
    visit(NamedField{"firstStepSeconds"}, x.first_step_seconds);
    visit(NamedField{"targetSeconds"}, x.target_seconds);
    visit(NamedField{"gradients"}, x.gradients);
    visit(NamedField{"samples"}, x.samples);
    visit(NamedField{"parameters"}, x.parameters);
    visit(NamedField{"device"}, x.device);
    visit(NamedField{"bytesExchanged"}, x.bytes_exchanged);
    visit(NamedField{"weightsCheckedStep"}, x.weights_checked_step);
    visit(NamedField{"checkpoint"}, x.checkpoint);
    visit(NamedField{"model"}, x.model);
    visit(NamedField{"folder"}, x.folder);
    visit(NamedField{"created"}, x.created);
    visit(NamedField{"finished"}, x.finished);
    visit(NamedField{"written"}, x.written);
    visit(NamedField{"members"}, x.members);
  }
};

// The phase of a run that nobody owns and whose status.json is damaged: how it ended is not known.
inline constexpr char kUnknownPhase[] = "Unknown";
// The reason of one whose owner ended without a word: all else is as that wrote it last.
inline constexpr char kOwnerLost[] = "OwnerLost";

// Its owner does not write what is told of it.
inline bool is_stale(const RunState& state) {
  return state.reason == api::kOwnerStopped || state.reason == api::kStatusOld;
}

// A run that is finished has no owner that trains it.
bool is_finished(const RunState& state);

// No process of the run lives any more: a member whose phase tells of one is gone, and no pod is ready.
void note_all_gone(RunState& state);

// JSON, keys in camelCase as in docs/cli.md.
std::string to_json(const RunState& state, int indent = 2);
// INVALID_ARGUMENT when `text` is no JSON object; unknown keys are skipped, and what is missing or of another
// type keeps its default.
absl::StatusOr<RunState> parse_run_state(std::string_view text);

}  // namespace paceline::cli
