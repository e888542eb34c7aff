#include "runtime/trainer/partial_steps.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

// A window's table has kWindow x members x (kMostParts + 1) floats: 7 KB of 4 members, 450 KB of 256. The
// choice goes through it once for each of kCandidates thresholds, which are the times of whole steps.

namespace paceline::trainer {

namespace {

constexpr std::size_t kColumns = PartialSteps::kMostParts + 1;
constexpr std::size_t kCandidates = 64;
constexpr double kSlack = 1.01;  // a step as long as the one that the threshold is taken from is no longer

double in_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// The lower one of two in the middle. REQUIRES: any.
float median(std::vector<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

PartialSteps::PartialSteps(double max_drop_rate, std::int64_t pass, std::vector<std::int64_t> samples,
                           int rank)
    : max_drop_rate_(max_drop_rate),
      pass_(pass),
      samples_(std::move(samples)),
      rank_(static_cast<std::size_t>(rank)) {
  PL_CHECK(rank_ < samples_.size(), "each rank has its samples");
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    batch_ += samples_[i];
    if (parts(i) > 1) most_left_out_ += samples_[i] - part_samples(i);
  }
  possible_ = max_drop_rate_ > 0 && pass_ > 0 && samples_.size() > 1 && most_left_out_ > 0;
  if (!possible_) return;
  table_.assign(kWindow * samples_.size() * kColumns, 0);
  typical_.assign(samples_.size(), 0);
}

std::int64_t PartialSteps::part_samples(std::size_t rank) const {
  if (pass_ <= 0) return samples_[rank];
  const std::int64_t passes = (samples_[rank] + pass_ - 1) / pass_;
  return pass_ * std::max<std::int64_t>(1, (passes + kMostParts - 1) / kMostParts);
}

int PartialSteps::parts(std::size_t rank) const {
  const std::int64_t each = part_samples(rank);
  return samples_[rank] == 0 ? 0 : static_cast<int>((samples_[rank] + each - 1) / each);
}

bool PartialSteps::may_leave_out() const {
  const double allowed = max_drop_rate_ * static_cast<double>(batch_) * static_cast<double>(steps_ + 1);
  return threshold_ && static_cast<double>(left_out_ + most_left_out_) <= allowed;
}

void PartialSteps::note_part(Duration since_begin) {
  parts_[static_cast<std::size_t>(done_++)] = static_cast<float>(in_seconds(since_begin - until_));
  until_ = since_begin;
}

bool PartialSteps::goes_on(std::int64_t done, Duration since_begin) {
  if (done % part_samples(rank_) != 0) return true;
  note_part(since_begin);
  if (!may_leave_out()) return true;
  stopped_ = in_seconds(since_begin) + typical_[rank_] > in_seconds(threshold_->tau);
  if (!stopped_) return true;
  // A pause is one part's, and a member that is slow in a step is so in most of its parts.
  std::vector<float> known(parts_.begin(), parts_.begin() + done_);
  known.push_back(typical_[rank_]);
  time_left_out_ = duration_of(median(std::move(known)) * static_cast<float>(parts(rank_) - done_));
  return false;
}

void PartialSteps::computed(Duration since_begin) {
  if (stopped_) return;
  note_part(since_begin);
  time_left_out_ = {};
}

void PartialSteps::applied(Duration since_begin, std::int64_t left_out) {
  if (holds_ > 0) {
    if (--holds_ == 0) threshold_.reset();
  } else if (steps_ >= kWarmUp && !full()) {
    const std::size_t row = static_cast<std::size_t>(measured_++) * samples_.size() + rank_;
    const auto at = table_.begin() + static_cast<std::ptrdiff_t>(row * kColumns);
    std::ranges::copy(parts_, at);
    at[kMostParts] = static_cast<float>(in_seconds(since_begin));
  }
  ++steps_;
  left_out_ += left_out;
  parts_ = {};
  done_ = 0;
  until_ = {};
  stopped_ = false;
}

std::span<const float> PartialSteps::measured(std::size_t step, std::size_t rank) const {
  return std::span(table_).subspan((step * samples_.size() + rank) * kColumns, kColumns);
}

void PartialSteps::set_typical() {
  for (std::size_t rank = 0; rank < samples_.size(); ++rank) {
    std::vector<float> times;
    for (std::size_t step = 0; step < kWindow; ++step) {
      const auto row = measured(step, rank).first(static_cast<std::size_t>(parts(rank)));
      times.insert(times.end(), row.begin(), row.end());
    }
    typical_[rank] = times.empty() ? 0 : median(std::move(times));
  }
}

PartialSteps::Outcome PartialSteps::outcome(double tau) const {
  std::int64_t used = 0;
  double seconds = 0;
  for (std::size_t step = 0; step < kWindow; ++step) {
    double longest = 0, rest = measured(step, 0)[kMostParts];
    for (std::size_t rank = 0; rank < samples_.size(); ++rank) {
      const std::span<const float> row = measured(step, rank);
      const int all = parts(rank);
      double end = 0;
      int done = 0;
      for (; done < all && (done == 0 || end + typical_[rank] <= tau); ++done)
        end += row[static_cast<std::size_t>(done)];
      longest = std::max(longest, end);
      used += std::min(samples_[rank], done * part_samples(rank));
      // The rest of the member that the others wait for has no wait in it.
      const double own = std::accumulate(row.begin(), row.begin() + kMostParts, 0.0);
      rest = std::min(rest, row[kMostParts] - own);
    }
    seconds += longest + std::max(rest, 0.0);
  }
  return {static_cast<double>(used) / (kWindow * static_cast<double>(batch_)), seconds / kWindow};
}

void PartialSteps::choose() {
  set_typical();
  std::vector<double> candidates;
  double never = 0;
  for (std::size_t step = 0; step < kWindow; ++step) {
    for (std::size_t rank = 0; rank < samples_.size(); ++rank) {
      const auto row = measured(step, rank);
      candidates.push_back(kSlack * std::accumulate(row.begin(), row.begin() + kMostParts, 0.0));
      never += 2 * candidates.back() + typical_[rank];
    }
  }
  std::ranges::sort(candidates);
  const Outcome whole = outcome(never);
  threshold_.reset();
  double best = 1 + kLeastGain;
  for (std::size_t i = 0; i < kCandidates; ++i) {
    const double tau = candidates[i * (candidates.size() - 1) / (kCandidates - 1)];
    const Outcome with = outcome(tau);
    const double speedup = with.used * whole.seconds / with.seconds;
    if (1 - with.used > max_drop_rate_ || !(speedup >= best)) continue;
    best = speedup;
    threshold_ = {duration_of(tau), speedup - 1, 1 - with.used};
  }
  holds_ = kHold;
  std::ranges::fill(table_, 0.0F);
  measured_ = 0;
}

}  // namespace paceline::trainer
