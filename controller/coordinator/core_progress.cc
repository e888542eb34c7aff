#include "controller/coordinator/core_progress.h"

#include <algorithm>
#include <utility>

#include "controller/coordinator/core_hello.h"

namespace paceline::coordinator {

namespace {

// One step, evaluation or stall is never taken to be longer than a day, a run never longer than ten years.
Duration sane_age(std::int64_t ns) {
  return Duration(std::clamp<std::int64_t>(ns, 0, Duration(std::chrono::hours(87600)).count()));
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::optional<Duration> newest_age(const v1::Heartbeat& heartbeat) {
  std::optional<Duration> newest;
  for (const v1::StepRecord& r : heartbeat.records())
    newest = std::max(newest.value_or(Duration::zero()), sane_age(r.since_start_ns()));
  for (const v1::EvaluationRecord& r : heartbeat.evaluations())
    newest = std::max(newest.value_or(Duration::zero()), sane_age(r.since_start_ns()));
  return newest;
}

}  // namespace

Duration sane_duration(std::int64_t ns) {
  return Duration(std::clamp<std::int64_t>(ns, 0, Duration(std::chrono::hours(24)).count()));
}

Step sane_step(std::int64_t step) {
  return std::clamp<std::int64_t>(step, 0, kMostCount);
}

StepTimes from_wire(const v1::StepTimes& times) {
  return {sane_duration(times.input_ns()),  sane_duration(times.compute_ns()),
          sane_duration(times.wait_ns()),   sane_duration(times.transfer_ns()),
          sane_duration(times.update_ns()), sane_duration(times.checkpoint_ns()),
          sane_duration(times.step_ns()),   sane_duration(times.left_out_ns())};
}

void set_means(const StepTimes& sum, std::int64_t steps, MemberTelemetry& telemetry) {
  const auto mean = [steps](Duration d) {
    constexpr double kMicrosecondsPerMs = 1000;
    return static_cast<double>(std::chrono::round<std::chrono::microseconds>(d / steps).count()) /
           kMicrosecondsPerMs;
  };
  telemetry.input_ms = mean(sum.input);
  telemetry.compute_ms = mean(sum.compute);
  telemetry.wait_ms = mean(sum.wait);
  telemetry.transfer_ms = mean(sum.transfer);
  telemetry.update_ms = mean(sum.update);
  telemetry.step_ms = mean(sum.step);
}

void JobProgress::rank_zero(const v1::Heartbeat& heartbeat, TimePoint now) {
  step_ = sane_step(heartbeat.step());
  samples_ = sane_step(heartbeat.samples());
  // Before the first step of a view rank 0 stands at 0. What it says next may be far beyond what it has taken
  // meanwhile: the steps of a checkpoint that it has loaded, which say nothing about the rate.
  const Step taken = std::min(sane_step(heartbeat.steps()), step_);
  if (!points_.empty() && points_.back().step == 0 && step_ > taken) {
    const double mean_samples = static_cast<double>(samples_) / static_cast<double>(step_);
    const auto samples = static_cast<std::int64_t>(mean_samples * static_cast<double>(taken));
    const RatePoint begin{points_.back().at, step_ - taken, samples_ - samples};
    points_.assign(1, begin);
  }
  if (heartbeat.total_steps() > 0) total_steps_ = sane_step(heartbeat.total_steps());
  if (heartbeat.train_samples() > 0) train_samples_ = sane_step(heartbeat.train_samples());
  if (heartbeat.parameter_count() > 0) parameters_ = heartbeat.parameter_count();
  add_rate_point(now);
}

void JobProgress::records_of_rank_zero(const v1::Heartbeat& heartbeat, TimePoint now, Effects& effects) {
  if (heartbeat.steps() > 0) {
    const StepTimes times = from_wire(heartbeat.times());
    goodput_.taken(sane_step(heartbeat.step()), sane_step(heartbeat.steps()),
                   std::max(times.step - times.checkpoint, Duration::zero()), now - began_);
    if (!first_step_) first_step_ = first_applied(heartbeat, now);
  }
  set_clock(heartbeat, now);
  add_records(heartbeat, effects);
}

void JobProgress::set_clock(const v1::Heartbeat& heartbeat, TimePoint now) {
  const std::optional<Duration> newest = newest_age(heartbeat);
  if (!newest) return;
  if (std::exchange(other_clock_, false) && last_age_ > Duration::zero())
    clock_offset_ = last_age_ + std::max(now - last_age_at_, Duration::zero()) - *newest;
  last_age_ = std::max(last_age_, *newest + clock_offset_);
  last_age_at_ = now;
}

// A heartbeat brings all steps since the one before it, in a short job all that there are: the first of them
// was applied as long ago as rank 0 has measured more since.
TimePoint JobProgress::first_applied(const v1::Heartbeat& heartbeat, TimePoint now) const {
  if (heartbeat.records().empty()) return now;
  const Duration first = sane_age(heartbeat.records(0).since_start_ns());
  Duration latest = sane_age(heartbeat.records().rbegin()->since_start_ns());
  for (const v1::EvaluationRecord& r : heartbeat.evaluations())
    latest = std::max(latest, sane_age(r.since_start_ns()));
  return std::clamp(now - std::max(latest - first, Duration::zero()), std::min(began_, now), now);
}

void JobProgress::add_records(const v1::Heartbeat& heartbeat, Effects& effects) {
  for (const v1::StepRecord& r : heartbeat.records()) {
    const StepRecord record{sane_step(r.step()), r.loss(), r.learning_rate(),
                            sane_age(r.since_start_ns()) + clock_offset_};
    if (last_step_ && record.step <= last_step_->step) continue;  // a step taken again in a later view
    effects.steps.push_back(record);
    last_step_ = record;
  }
  add_evaluations(heartbeat, {}, last_of_rank_zero_, effects);
}

void JobProgress::evaluations_of_observer(const v1::Heartbeat& heartbeat, const std::string& observer,
                                          Effects& effects) {
  add_evaluations(heartbeat, observer, last_of_observer_, effects);
}

void JobProgress::add_evaluations(const v1::Heartbeat& heartbeat, const std::string& observer,
                                  std::optional<Step>& last, Effects& effects) {
  for (const v1::EvaluationRecord& r : heartbeat.evaluations()) {
    EvaluationRecord record{
        sane_step(r.step()),          r.loss(),          r.accuracy(), sane_step(r.samples()),
        sane_age(r.since_start_ns()), r.target_reached()};
    if (observer.empty()) record.since_start += clock_offset_;
    if (r.has_auc()) record.auc = r.auc();
    record.observer = observer;
    if (last && record.step <= *last) continue;
    last = record.step;
    const bool first = evaluated_.insert(record.step).second;
    if (!first && !record.target_reached) continue;  // that it reached the target only rank 0 can say
    if (evaluated_.size() > kMaxEvaluatedSteps) evaluated_.erase(evaluated_.begin());
    effects.evaluations.push_back(record);
    if (!last_evaluation_ || record.step > last_evaluation_->step || !first) last_evaluation_ = record;
  }
}

void JobProgress::add_rate_point(TimePoint now) {
  if (!points_.empty() && (points_.back().step > step_ || points_.back().samples > samples_)) points_.clear();
  points_.push_back({now, step_, samples_});
  while (points_.size() > kMaxRatePoints || (points_.size() > 2 && now - points_[1].at >= kRateWindow))
    points_.pop_front();
}

void JobProgress::checkpoint(const v1::CheckpointResult& result, Effects& effects) {
  const CheckpointRecord record{sane_step(result.step()), cut(result.path()), cut(result.error()),
                                sane_duration(result.stall_ns()), result.bytes()};
  if (told_checkpoint_ == record) return;
  told_checkpoint_ = record;
  effects.checkpoints.push_back(record);
  if (record.error.empty()) last_checkpoint_ = record;
}

std::vector<int> JobProgress::weights(int rank, int world_size, Step step, std::uint64_t hash) {
  if (step <= 0) return {};
  if (hashes_.size() >= kMaxHashedSteps && !hashes_.contains(step)) {
    if (step < hashes_.begin()->first) return {};  // too old to compare
    hashes_.erase(hashes_.begin());
  }
  auto& by_rank = hashes_[step];
  by_rank[rank] = hash;
  std::map<std::uint64_t, int> votes;
  for (const auto& [_, h] : by_rank) ++votes[h];
  if (votes.size() == 1) {
    if (static_cast<int>(by_rank.size()) == world_size) checked_step_ = std::max(checked_step_, step);
    return {};
  }
  std::uint64_t right = by_rank.begin()->second;
  for (const auto& [h, count] : votes) {
    if (count > votes[right]) right = h;
  }
  std::vector<int> wrong;
  for (const auto& [r, h] : by_rank) {
    if (h != right) wrong.push_back(r);
  }
  return wrong;
}

void JobProgress::new_view(bool other_rank_zero) {
  other_clock_ |= other_rank_zero;
  points_.clear();
  hashes_.clear();
}

void JobProgress::fill(Report& report, TimePoint now) const {
  const TimePoint until = ended_.value_or(now);
  report.step = step_;
  report.total_steps = total_steps_;
  report.samples = samples_;
  report.train_samples = train_samples_;
  report.parameter_count = parameters_;
  report.last_step = last_step_;
  report.last_evaluation = last_evaluation_;
  report.last_observed = last_of_observer_;
  report.last_checkpoint = last_checkpoint_;
  report.told_checkpoint = told_checkpoint_;
  report.weights_checked_step = checked_step_;
  report.elapsed = until - began_;
  if (first_step_) report.first_step_after = *first_step_ - began_;
  report.goodput = goodput_.share(report.elapsed);
  report.goodput_seconds = goodput_.seconds(report.elapsed);
  if (points_.size() < 2) return;
  const RatePoint &first = points_.front(), &last = points_.back();
  const double window = seconds(last.at - first.at);
  if (window <= 0) return;
  report.samples_per_second = static_cast<double>(last.samples - first.samples) / window;
  const double steps_per_second = static_cast<double>(last.step - first.step) / window;
  if (!ended_ && steps_per_second > 0 && total_steps_ >= step_ && total_steps_ > 0) {
    const double left =
        std::min(static_cast<double>(total_steps_ - step_) / steps_per_second, 3e8);  // ten years
    report.eta = Duration(static_cast<std::int64_t>(left * 1e9));
  }
}

}  // namespace paceline::coordinator
