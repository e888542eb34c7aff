#pragma once

// What heartbeats say about the job's progress: records, rates, goodput, and whether all ranks hold the same
// weights. Pure; every figure from the wire is brought into a sane range first.

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "controller/coordinator/core.h"

namespace paceline::coordinator {

inline constexpr Duration kRateWindow = std::chrono::seconds(5);
inline constexpr std::size_t kMaxRatePoints = 64;
inline constexpr std::size_t kMaxHashedSteps = 128;
inline constexpr std::size_t kMaxEvaluatedSteps = 1024;

StepTimes from_wire(const v1::StepTimes& times);
Step sane_step(std::int64_t step);        // into [0, 2^53]
Duration sane_duration(std::int64_t ns);  // into [0, a day]
// A step's mean times, in whole microseconds. REQUIRES: steps > 0.
void set_means(const StepTimes& sum, std::int64_t steps, MemberTelemetry& telemetry);

class JobProgress {
 public:
  explicit JobProgress(TimePoint began, const Goodput::Before& before = {})
      : began_(began), goodput_(before) {}

  // A heartbeat of rank 0 in the current view: where training stands.
  void rank_zero(const v1::Heartbeat& heartbeat, TimePoint now);
  // What it brings, once: its new records go to `effects`.
  void records_of_rank_zero(const v1::Heartbeat& heartbeat, TimePoint now, Effects& effects);
  // What an evaluator, `observer`, has evaluated. A step that was evaluated before counts once, whoever it
  // was; but rank 0's that reached the target counts in any case.
  void evaluations_of_observer(const v1::Heartbeat& heartbeat, const std::string& observer, Effects& effects);
  // A result that is told again after a re-attach counts once.
  void checkpoint(const v1::CheckpointResult& result, Effects& effects);
  // What rank 0 says as it leaves: its last heartbeat may have been refused or lost.
  void reached(Step step) { step_ = std::max(step_, step); }
  Step step() const { return step_; }

  // A rank's hash after `step` steps; `world_size`: of those who send one. The ranks that are wrong (the
  // minority; of a draw those that differ from the lowest rank), or empty.
  std::vector<int> weights(int rank, int world_size, Step step, std::uint64_t hash);

  // A new view: the rates and the hashes begin anew. `other_rank_zero`: it counts its own time since its
  // start, which goes on here from that of the one before.
  void new_view(bool other_rank_zero = false);
  // The steps beyond this one are lost.
  void goes_on_from(Step step) { goodput_.goes_on_from(step); }
  void end(TimePoint now) {
    if (!ended_) ended_ = now;
  }
  void fill(Report& report, TimePoint now) const;

 private:
  struct RatePoint {
    TimePoint at;
    Step step = 0;
    std::int64_t samples = 0;
  };
  void add_records(const v1::Heartbeat& heartbeat, Effects& effects);
  void set_clock(const v1::Heartbeat& heartbeat, TimePoint now);
  void add_evaluations(const v1::Heartbeat& heartbeat, const std::string& observer, std::optional<Step>& last,
                       Effects& effects);
  TimePoint first_applied(const v1::Heartbeat& heartbeat, TimePoint now) const;
  void add_rate_point(TimePoint now);

  TimePoint began_;
  std::optional<TimePoint> ended_, first_step_;
  Step step_ = 0, total_steps_ = 0;
  std::int64_t samples_ = 0, train_samples_ = 0;
  std::uint64_t parameters_ = 0;
  Goodput goodput_;
  Duration last_age_{}, clock_offset_{};  // of the newest record; of rank 0's ages to those that are told
  TimePoint last_age_at_{};               // when it came
  bool other_clock_ = false;              // another rank 0 has told of no record yet
  std::deque<RatePoint> points_;
  std::optional<StepRecord> last_step_;
  std::optional<EvaluationRecord> last_evaluation_;  // of the latest step
  std::optional<Step> last_of_rank_zero_, last_of_observer_;
  std::set<Step> evaluated_;                                           // the latest kMaxEvaluatedSteps
  std::optional<CheckpointRecord> last_checkpoint_, told_checkpoint_;  // that was written; that was told
  std::map<Step, std::map<int, std::uint64_t>> hashes_;  // newest kMaxHashedSteps steps; by rank
  Step checked_step_ = 0;
};

}  // namespace paceline::coordinator
