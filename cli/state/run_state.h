#pragma once

// What is known about one local run: what the live view draws, what `get`, `describe` and `top` print, and
// what the run's folder keeps as status.json. A value; pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/api/types.h"

namespace paceline::cli {

struct HotRowState {
  std::string table;
  std::uint64_t id = 0;
  std::int64_t pulls = 0;
};

// Of a parameter server; rates of about the last second.
struct ServerState {
  double load = 0, bytes_per_second = 0;
  std::int64_t queue = 0, updates = 0;
  std::int64_t rows = 0, row_bytes = 0, rows_evicted = 0;  // of sparse tables
  std::vector<HotRowState> hottest;                        // most pulls first
};

// Of one worker's gradients, since it began. Staleness: updates between its read and its update.
struct StalenessState {
  std::int64_t applied = 0, dropped = 0, max = 0;
  double mean = 0, wait_seconds = 0;
  std::vector<std::int64_t>
      histogram;  // [i]: applied with staleness i; the last: that or more; empty: not known
};

// How a member's GPU is; what it does not tell is empty.
struct GpuState {
  std::string name;
  std::optional<std::int64_t> index;  // of those that the member sees, from 0
  std::optional<std::string> uuid;
  std::optional<double> compute_ms, update_ms;            // of its own clock, per step
  std::optional<double> utilization, memory_utilization;  // 0..1
  std::optional<std::int64_t> memory_used_mib, memory_total_mib;
  std::optional<std::int64_t> sm_clock_mhz, most_sm_clock_mhz, memory_clock_mhz, most_memory_clock_mhz;
  std::optional<std::int64_t> temperature_celsius;
  std::optional<double> power_watts, power_limit_watts;
  std::vector<std::string> slowdowns;  // why its clocks are lower than they could be
  std::optional<std::int64_t> corrected_ecc_errors, uncorrected_ecc_errors, pcie_replays;
  std::int64_t xids = 0, last_xid = 0;  // errors that the driver told
};

// Of a step of servers that wait for the first gradients only.
struct StepGradients {
  std::int64_t counted = 0, workers = 0;  // the first so many of theirs
  double samples = 0;                     // that count in a step, as a mean
  std::int64_t batch = 0;                 // globalBatchSize
};

// One member of the job. Times are means over the steps of the last heartbeat, in milliseconds of the
// member's own clock.
struct MemberState {
  std::string pod;   // "fashion-allreduce-worker-0-0"
  std::string name;  // "worker-0"
  std::int64_t pid = 0;
  std::optional<std::string> node;  // on a cluster
  std::string phase;                // "Starting", "Training", "Evaluating", ..., or how it ended
  std::int64_t step = 0;
  double input_ms = 0, compute_ms = 0, wait_ms = 0, transfer_ms = 0, update_ms = 0, step_ms = 0;
  std::uint64_t bytes_sent = 0;
  std::optional<ServerState> server;
  std::optional<StalenessState> staleness;
  std::optional<GpuState> gpu;
};

struct RunState {
  std::string name;  // of the run: its folder's name
  std::string job;   // of the TrainingJob
  std::string ns = "default";
  std::string job_file;           // as given on the command line, absolute
  std::string phase = "Pending";  // Pending, Starting, Running, Succeeded, Failed, Stopped
  std::string reason;             // CamelCase
  std::string message;            // the whole error where it failed
  std::int64_t owner_pid = 0;     // of the `paceline run` that owns it

  std::uint64_t generation = 0;
  std::int64_t step = 0, total_steps = 0;
  double epoch = 0;
  std::optional<double> loss, accuracy, test_loss;
  std::optional<double> auc;  // of models that give one score
  std::string target;         // "accuracy >= 0.9", or empty
  bool target_reached = false;
  double samples_per_second = 0;  // over a sliding window; the mean once finished
  double goodput = 0;             // 0..1: time in steps that counted / time since the first step
  std::optional<double> eta_seconds;
  double elapsed_seconds = 0;                                // since the start of the run
  std::optional<double> first_step_seconds, target_seconds;  // since the start of the run
  std::optional<StepGradients> gradients;                    // absent: everybody's count
  std::int64_t samples = 0;
  std::uint64_t parameters = 0;
  std::string device;                     // what its members compute on, "NVIDIA H200"; empty: not known yet
  std::uint64_t bytes_exchanged = 0;      // sent, all members
  std::int64_t weights_checked_step = 0;  // the newest whose weights were seen equal on all ranks; 0: none

  std::string checkpoint, model;  // paths, empty: none
  std::string folder;             // the run's
  std::string created, finished;  // RFC 3339
  std::vector<MemberState> members;
  api::Status status;  // the job's, as a cluster's API server has it
};

bool is_finished(const RunState& state);

// JSON, keys in camelCase as in docs/cli.md.
std::string to_json(const RunState& state, int indent = 2);
// INVALID_ARGUMENT when `text` is not what to_json writes; unknown keys are skipped, missing ones keep their
// defaults.
absl::StatusOr<RunState> parse_run_state(std::string_view text);

}  // namespace paceline::cli
