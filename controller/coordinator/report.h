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
#include "base/telemetry.h"
#include "controller/api/fault.h"
#include "controller/api/status.h"
#include "controller/plan/observed.h"

namespace paceline::coordinator {

using plan::Incarnation;
using plan::JobState;
using plan::LostMember;

// Members say them, but for the last two, of members that wait: one is given the state meanwhile, one is
// ready for another's place.
enum class Phase : std::uint8_t {
  kStarting,
  kWaiting,
  kTraining,
  kEvaluating,
  kCheckpointing,
  kFinished,
  kCatchingUp,
  kStandby
};
const char* phase_name(Phase phase);

// Measured by the member on its own clock. Parts add up to `step` but for a small rest.
struct StepTimes {
  Duration input{}, compute{}, wait{}, transfer{}, update{}, checkpoint{}, step{};
  Duration left_out{};  // beside the step: what the samples that it left out would have taken
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
  Duration silent{};  // since it was last heard
  MemberTelemetry telemetry;
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

struct StragglerChange {
  api::Straggler straggler;
  bool found = true;  // else it holds the others back no more
};

struct ViewRecord {
  Generation generation;
  std::vector<std::string> members;  // "chief-0", "worker-0", ... in rank order
};

struct Report {
  std::string job;
  JobState state = JobState::kForming;
  std::string reason;   // why it is in this state, in words
  Duration in_state{};  // since it came into it
  Generation generation;
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
  double goodput = 0;                        // time in steps that count / goodput_seconds, 0..1
  double goodput_seconds = 0;                // by all coordinators of the job
  std::uint64_t bytes_sent = 0;              // by all members' exchanges
  std::int64_t weights_checked_step = 0;  // newest step whose weights were seen equal on all ranks; 0: none
  std::uint64_t dropped_records = 0;      // records and reasons given up: an observer was too slow

  std::string model_path;             // of a finished job
  std::string checkpoint_path;        // the last that rank 0 named as it left; empty: none
  std::optional<api::Fault> verdict;  // why it can't go on, or why a view ends: one root cause
  Duration verdict_age{};
  std::vector<LostMember> lost;                // in the order in which they were lost
  std::optional<api::ViewChange> view_change;  // how the newest view began that another one was before
  std::optional<std::vector<api::Straggler>> stragglers;  // nothing: too few steps are known
  std::optional<api::Rebalance> rebalance;                // the newest
  std::optional<api::Preflight> preflight;                // likewise
  std::optional<plan::SaveAnswer> save_answer;            // likewise, of a checkpoint that was asked for
  std::vector<std::string> cleared;                       // pods that were slow, and are no more
  std::optional<plan::Shortage> shortage;                 // of a view that can't be formed yet
  std::vector<std::string> refused;        // uids of pods that came with another token than the job's
  std::optional<Incarnation> handed_over;  // the newest: who was slow there is no member any more
  std::optional<MemberReport> successor;   // that is to take over a place; not among `members`
};

}  // namespace paceline::coordinator
