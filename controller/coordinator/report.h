#pragma once

// What a job's coordinator knows, as plain values: the planner's and the people's view. No protobuf, no
// threads, no errors.
//
// Steps are counted as "applied so far": 12 means that 12 updates are in the weights. Times are on the
// coordinator's monotonic clock unless a field says that a member measured them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controller/api/fault.h"

namespace paceline::coordinator {

enum class JobState : std::uint8_t { kForming, kRunning, kDraining, kFinished, kFailed, kStopped };
const char* job_state_name(JobState state);
constexpr bool is_final(JobState state) {
  return state >= JobState::kFinished;
}

enum class Phase : std::uint8_t { kStarting, kWaiting, kTraining, kEvaluating, kCheckpointing, kFinished };
const char* phase_name(Phase phase);

// Measured by the member on its own clock. Parts add up to `step` but for a small rest.
struct StepTimes {
  Duration input{}, compute{}, wait{}, transfer{}, update{}, checkpoint{}, step{};
};

struct HotRow {
  std::string table;
  std::uint64_t id = 0;
  std::int64_t pulls = 0;
};

// Of a parameter server. Counts: since it began; rates: of about the last second.
struct ServerReport {
  std::int64_t updates = 0, gradients = 0;
  std::uint64_t bytes_received = 0, bytes_sent = 0;
  double load = 0;                            // share of the time in which it sums, updates or moves bytes
  double bytes_per_second = 0;                // both ways
  std::int64_t queue = 0;                     // gradients that wait for their update
  std::int64_t rows = 0;                      // of sparse tables
  std::uint64_t row_bytes = 0;                // their memory
  std::int64_t row_hits = 0, row_misses = 0;  // rows pulled that were there, and that were not
  std::int64_t rows_created = 0, rows_evicted = 0;
  std::vector<HotRow> hottest;  // most pulls first
};

// Of one worker's gradients, since it began. Staleness: updates between its read and its update.
struct StalenessReport {
  std::int64_t applied = 0, dropped = 0;
  std::vector<std::int64_t> histogram;  // [i]: applied with staleness i; the last one: that or more
  double mean = 0;
  std::int64_t max = 0;
  Duration wait{};  // for its turns
};

// How a member's GPU is; what it did not tell is empty.
struct GpuReport {
  std::string name;
  std::optional<std::int64_t> index;  // of those that the member sees, from 0
  std::string uuid;
  std::optional<double> compute_ms, update_ms;            // of its own clock, per step
  std::optional<double> utilization, memory_utilization;  // 0 to 1
  std::optional<std::int64_t> memory_used_mib, memory_total_mib;
  std::optional<std::int64_t> sm_clock_mhz, most_sm_clock_mhz, memory_clock_mhz, most_memory_clock_mhz;
  std::optional<std::int64_t> temperature_celsius;
  std::optional<double> power_watts, power_limit_watts;
  std::vector<std::string> slowdowns;  // why its clocks are lower than they could be
  std::optional<std::int64_t> corrected_ecc_errors, uncorrected_ecc_errors, pcie_replays;
  std::int64_t xids = 0, last_xid = 0;  // errors that the driver told
};

struct MemberReport {
  Role role = Role::kWorker;
  int index = 0;
  bool attached = false;             // its stream is open now
  bool left = false;                 // it said goodbye, or was told that the job is finished
  bool finished = false;             // its work was done when it left, and nobody had asked it to stop
  bool lost = false;                 // the others go on without it
  std::string member_id, pod, host;  // empty before it attached
  std::int64_t pid = 0;
  int rank = -1;  // in the current view
  Phase phase = Phase::kStarting;
  Step step = 0;
  Duration silent{};     // since it was last heard
  StepTimes mean_times;  // per step, over the last heartbeat that had steps
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  std::optional<ServerReport> server;        // of servers that told
  std::optional<StalenessReport> staleness;  // of workers of servers that told
  std::optional<GpuReport> gpu;              // of members that compute on one
};

// The others go on without it.
struct LostMember {
  Role role = Role::kWorker;
  int index = 0;
  std::string pod, message;
};

struct StepRecord {
  Step step = 0;
  double loss = 0, learning_rate = 0;
  Duration since_start{};  // rank 0's clock, from its start of training
};

struct EvaluationRecord {
  Step step = 0;
  double loss = 0, accuracy = 0;
  std::int64_t samples = 0;
  Duration since_start{};
  bool target_reached = false;
  std::optional<double> auc = std::nullopt;  // of models with one score for each sample
  std::string observer = {};  // "evaluator-0", of the checkpoint of that step; empty: those who train did
};

struct CheckpointRecord {
  Step step = 0;
  std::string path, error;             // error: empty when it was written
  std::optional<Duration> stall = {};  // how long training waited for it; empty: nobody told
  std::uint64_t bytes = 0;

  bool operator==(const CheckpointRecord&) const = default;
};

// Times of single steps of one member (thinned by the member when they are many).
struct MemberSteps {
  Role role = Role::kWorker;
  int index = 0, rank = -1;
  std::vector<Step> steps;
  std::vector<StepTimes> times;  // same length
};

struct ViewRecord {
  Generation generation;
  std::vector<std::string> members;  // "chief-0", "worker-0", ... in rank order
  Step first_step = 0;
};

struct Report {
  std::string job;
  JobState state = JobState::kForming;
  std::string reason;   // why it is in this state, in words
  Duration in_state{};  // since it came into it
  Generation generation;
  int world_size = 0;                 // of the current view; 0: none yet
  std::vector<MemberReport> members;  // all expected: chief, workers, servers; then evaluators

  Step step = 0, total_steps = 0;  // total 0: not known yet
  std::int64_t samples = 0;        // applied so far, over all members
  std::int64_t train_samples = 0;  // of an epoch
  std::uint64_t parameter_count = 0;
  std::optional<StepRecord> last_step;
  std::optional<EvaluationRecord> last_evaluation;
  std::optional<Step> last_observed;  // the last that an evaluator told of, evaluated before or not
  std::optional<CheckpointRecord> last_checkpoint;  // that was written
  std::optional<CheckpointRecord> told_checkpoint;  // the newest that was tried, written or not
  double samples_per_second = 0;                    // over the last seconds
  std::optional<Duration> eta;
  Duration elapsed{};  // since the job's coordinator began; stands still when the job has ended
  std::optional<Duration> first_step_after;  // from that moment to the first applied step
  double goodput = 0;                        // time in applied steps / elapsed, 0..1
  std::uint64_t bytes_sent = 0;              // by all members' exchanges
  std::int64_t weights_checked_step = 0;  // newest step whose weights were seen equal on all ranks; 0: none
  std::uint64_t dropped_records = 0;      // records and reasons given up: an observer was too slow

  std::string model_path;             // of a finished job
  std::string checkpoint_path;        // the last that rank 0 named as it left; empty: none
  std::optional<api::Fault> verdict;  // why it can't go on, or why a view ends: one root cause
  Duration verdict_age{};
  std::vector<LostMember> lost;      // in the order in which they were lost
  std::vector<std::string> refused;  // uids of pods that came with another token than the job's
};

}  // namespace paceline::coordinator
