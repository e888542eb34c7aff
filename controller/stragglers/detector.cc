#include "controller/stragglers/detector.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

// One block costs O(N log N) for N members: the others' median of each is read off the sorted times.

namespace paceline::stragglers {

namespace {

constexpr double kLeastWidth = 0.02;                // of noise, in logs: clocks and timers are no better
constexpr double kUsualBlocks = 64, kForget = 512;  // of the usual step: at least, and how long it lasts
constexpr double kClip = 2;  // no block counts for more standard deviations, or more than `factor` squared
constexpr double kTiny = 1e-9;

double log_of(double seconds) {
  return std::log(std::max(seconds, kTiny));
}

double median_of_sorted(std::span<const double> sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// The median of all but one of `sorted`, which is `value`. REQUIRES: two values at least.
double median_without(std::span<const double> sorted, double value) {
  const auto at = static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
  const auto other = [&](std::size_t i) { return sorted[i < at ? i : i + 1]; };
  const std::size_t count = sorted.size() - 1, middle = count / 2;
  return count % 2 == 1 ? other(middle) : (other(middle - 1) + other(middle)) / 2;
}

// A member that tells of no time of its own is compared with nobody.
bool tells(const Row& row) {
  return row.steps > 0 && row.own() > 0;
}

template <typename Value>
std::vector<double> sorted_of(const Block& block, Value value) {
  std::vector<double> values;
  for (const Row& row : block.rows) {
    if (tells(row)) values.push_back(value(row));
  }
  std::ranges::sort(values);
  return values;
}

// Whether the mean of logs is more than half of the way to the factor, not by chance.
bool is_above(double factor, double sum, double blocks, double width) {
  return sum / blocks - kSure * width / std::sqrt(blocks) >= std::log(factor) / 2;
}

bool is_below(double factor, double sum, double blocks, double width) {
  return sum / blocks + kSure * width / std::sqrt(blocks) < std::log(factor) / 2;
}

Duration from_seconds(double seconds) {
  constexpr double kNanoseconds = 1e9;
  return Duration(std::llround(seconds * kNanoseconds));
}

}  // namespace

const char* kind_name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kSlow:
      return "Slow";
    case FindingKind::kMoreWork:
      return "MoreWork";
    case FindingKind::kAllSlow:
      return "AllSlow";
  }
  return "";
}

const char* part_name(Part part) {
  switch (part) {
    case Part::kInput:
      return "input";
    case Part::kCompute:
      return "compute";
    case Part::kUpdate:
      return "update";
  }
  return "";
}

void Detector::Sums::halve() {
  steps /= 2;
  for (double* sum : {&blocks, &waits_less, &own_log, &rate_log, &input, &compute, &update, &own,
                      &typical_input, &typical_compute, &typical_update, &typical, &typical_step})
    *sum /= 2;
}

Detector::Detector(Settings settings) : settings_(settings), step_(settings.factor) {}

Detector::Member& Detector::member(int place) {
  while (members_.size() <= static_cast<std::size_t>(place)) members_.emplace_back(settings_.factor);
  return members_[static_cast<std::size_t>(place)];
}

void Detector::begin_view(std::span<const int> places) {
  places_.assign(places.begin(), places.end());
  blocks_.begin_view(static_cast<int>(places.size()));
  for (const int place : places_) member(place);
  std::erase_if(findings_, [&](const Finding& finding) {
    return finding.place >= 0 && std::ranges::find(places_, finding.place) == places_.end();
  });
}

void Detector::forget(int place) {
  member(place) = Member(settings_.factor);
}

void Detector::add(int rank, const StepSample& sample) {
  blocks_.add(rank, sample);
}

bool Detector::advance() {
  bool judged = false;
  while (const std::optional<Block> block = blocks_.take()) {
    judge(*block);
    judged_ = std::min(judged_ + 1, kLeastBlocks);
    judged = true;
  }
  if (!judged) return false;
  const std::vector<Finding> before = std::exchange(findings_, find());
  const auto same = [](const Finding& a, const Finding& b) {
    return a.kind == b.kind && a.place == b.place && a.part == b.part;
  };
  return !std::ranges::equal(before, findings_, same);
}

std::vector<Standing> Detector::standings() const {
  std::vector<Standing> all;
  for (const int place : places_) {
    const Member& member = members_[static_cast<std::size_t>(place)];
    std::array<double, kLatest> ratios = member.ratios;
    std::ranges::sort(ratios);
    const double excess = (member.sums.own - member.sums.typical) / std::max(1.0, member.sums.blocks);
    all.push_back({.place = place,
                   .ratio = std::exp(median_of_sorted(ratios)),
                   .evidence = std::max(member.own.evidence(), member.rate.evidence()),
                   .excess = from_seconds(std::max(0.0, excess)),
                   .found = member.found.has_value()});
  }
  return all;
}

void Detector::judge(const Block& block) {
  const auto own = sorted_of(block, [](const Row& row) { return log_of(row.own()); });
  if (own.empty()) return;
  const auto median_of = [&](auto value) { return median_of_sorted(sorted_of(block, value)); };
  const Typical typical{.input = median_of([](const Row& r) { return r.input; }),
                        .compute = median_of([](const Row& r) { return r.compute; }),
                        .update = median_of([](const Row& r) { return r.update; }),
                        .wait = median_of([](const Row& r) { return r.wait; }),
                        .step = median_of([](const Row& r) { return r.own() + r.wait + r.transfer; })};
  // The lower median: of two members the slow one says nothing of both.
  judge_all(block, typical, own[(own.size() - 1) / 2]);
  if (own.size() < 2) return;
  const bool work_is_told =
      std::ranges::all_of(block.rows, [](const Row& r) { return !tells(r) || r.work > 0; });
  const auto rate_of = [&](const Row& row) {
    return log_of(work_is_told ? row.own() / row.work : row.own());
  };
  const auto rates = sorted_of(block, rate_of);
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    const Row& row = block.rows[rank];
    if (!tells(row)) continue;
    const double own_log = log_of(row.own()) - median_without(own, log_of(row.own()));
    const double rate_log = rate_of(row) - median_without(rates, rate_of(row));
    judge_member(member(places_[rank]), block, row, own_log, rate_log, typical);
  }
}

void Detector::judge_member(Member& member, const Block& block, const Row& row, double own_log,
                            double rate_log, const Typical& typical) {
  member.own_noise.add(own_log);
  member.rate_noise.add(rate_log);
  // An excess of less than half of what matters counts as none: so a finding ends, too, where steps become
  // short.
  const double ratio = own_log, others = std::exp(log_of(row.own()) - ratio),
               excess = 2 * (row.own() - others);
  if (from_seconds(excess) < settings_.least_excess || excess < kLeastShare * typical.step) {
    own_log = std::min(own_log, 0.0);
    rate_log = std::min(rate_log, 0.0);
  }
  member.early.emplace_back(own_log, rate_log);
  if (member.own_noise.is_known()) {
    const double threshold = threshold_of(places_.size());
    member.own_width = std::max(kLeastWidth, member.own_noise.width());
    member.rate_width = std::max(kLeastWidth, member.rate_noise.width());
    for (const auto& [early_own, early_rate] : std::exchange(member.early, {})) {
      member.own.add(early_own, member.own_width, threshold);
      member.rate.add(early_rate, member.rate_width, threshold);
    }
  }
  Sums& sums = member.sums;
  const bool rises = member.own.rises() || member.rate.rises() || !member.early.empty();
  if (!rises) sums = {};
  if (sums.blocks == 0) sums.since = block.begin;
  if (sums.blocks >= 2 * Sums::kMostBlocks) sums.halve();
  sums.blocks += 1;
  sums.steps += block.end - block.begin;
  if (row.wait <= typical.wait) sums.waits_less += 1;
  const auto clipped = [most = 2 * std::log(settings_.factor)](double value, double width) {
    const double bound = std::max(most, kClip * width);
    return std::clamp(value, -bound, bound);
  };
  const double counted = clipped(own_log, member.own_width);
  member.latest[member.count % kLatest] = counted;
  member.ratios[member.count++ % kLatest] = ratio;
  sums.own_log += counted;
  sums.rate_log += clipped(rate_log, member.rate_width);
  sums.input += row.input;
  sums.compute += row.compute;
  sums.update += row.update;
  sums.own += row.own();
  sums.typical_input += typical.input;
  sums.typical_compute += typical.compute;
  sums.typical_update += typical.update;
  sums.typical += others;
  sums.typical_step += typical.step;
}

// The usual step follows slowly, so that a job that is another one from some step on is not slow for ever. It
// is a mean of kUsualBlocks at least, and only what lies beyond its own uncertainty counts.
void Detector::judge_all(const Block& block, const Typical& typical, double step) {
  step_noise_.add(step);
  usual_blocks_ = std::min(usual_blocks_ + 1, kForget);
  const double above = step - usual_step_;
  usual_step_ += above / usual_blocks_;
  if (usual_blocks_ <= kUsualBlocks) return;
  const double width = std::max(kLeastWidth, step_noise_.width());
  step_.add(above - kSure * width / std::sqrt(kUsualBlocks), width, threshold_of(1));
  Sums& sums = step_sums_;
  if (!step_.rises()) sums = {};
  if (sums.blocks == 0) sums.since = block.begin;
  if (sums.blocks >= 2 * Sums::kMostBlocks) sums.halve();
  sums.blocks += 1;
  sums.steps += block.end - block.begin;
  sums.input += typical.input;
  sums.compute += typical.compute;
  sums.update += typical.update;
  sums.own += std::exp(step);
  sums.typical += std::exp(usual_step_);
}

std::optional<FindingKind> Detector::judge(const Member& member) const {
  const Sums& sums = member.sums;
  if (!member.own.slow() && !member.rate.slow()) return std::nullopt;
  const bool for_its_work =
      member.rate.slow() && is_above(settings_.factor, sums.rate_log, sums.blocks, member.rate_width);
  if (member.found) return for_its_work ? FindingKind::kSlow : member.found;
  if (sums.blocks < kLeastBlocks) return std::nullopt;
  if (!is_above(settings_.factor, sums.own_log, sums.blocks, member.own_width)) return std::nullopt;
  const double latest = std::accumulate(member.latest.begin(), member.latest.end(), 0.0) / kLatest;
  if (latest < std::log(settings_.factor) / 2) return std::nullopt;
  const double excess = (sums.own - sums.typical) / sums.blocks;
  const bool matters = from_seconds(excess) >= settings_.least_excess &&
                       excess >= kLeastShare * sums.typical_step / sums.blocks &&
                       sums.waits_less >= kLeastWaiting * sums.blocks;
  if (!matters) return std::nullopt;
  if (for_its_work) return FindingKind::kSlow;
  if (is_below(settings_.factor, sums.rate_log, sums.blocks, member.rate_width))
    return FindingKind::kMoreWork;
  return std::nullopt;  // not known yet
}

Finding Detector::finding_of(int place, const Member& member) const {
  const Sums& sums = member.sums;
  const double own = sums.own / sums.blocks, typical = sums.typical / sums.blocks;
  Finding finding{.kind = *member.found,
                  .place = place,
                  .factor = own / typical,
                  .since = sums.since,
                  .steps = sums.steps,
                  .own = from_seconds(own),
                  .typical = from_seconds(typical)};
  const double input = sums.input - sums.typical_input, compute = sums.compute - sums.typical_compute,
               update = sums.update - sums.typical_update;
  if (compute >= input && compute >= update) finding.part = Part::kCompute;
  if (update > input && update > compute) finding.part = Part::kUpdate;
  return finding;
}

std::vector<Finding> Detector::find() {
  std::vector<Finding> found;
  std::size_t suspects = 0;
  double longest = 0, second = 0;  // own times of a step
  for (const int place : places_) {
    Member& member = members_[static_cast<std::size_t>(place)];
    member.found = judge(member);
    if (member.own.suspect()) ++suspects;
    const double own = member.sums.own / std::max(1.0, member.sums.blocks);
    second = std::max(second, std::min(own, longest));
    longest = std::max(longest, own);
    if (member.found) found.push_back(finding_of(place, member));
  }
  const auto slow = static_cast<int>(std::ranges::count(found, FindingKind::kSlow, &Finding::kind));
  for (Finding& finding : found) {
    finding.members = slow;
    const Duration others = from_seconds(finding.own >= from_seconds(longest) ? second : longest);
    finding.lost = std::max(Duration::zero(), finding.own - others);
  }
  std::ranges::sort(found, {}, &Finding::place);
  // Several that become slow at once are found one after the other. Where one was found before, another's
  // suspicion changes nothing.
  const bool known = std::ranges::find(findings_, FindingKind::kSlow, &Finding::kind) != findings_.end();
  const auto together = known ? static_cast<std::size_t>(slow) : suspects;
  const bool many = together >= 2 && 3 * together >= places_.size();
  if (!step_.slow() && !(many && slow > 0)) return found;
  Finding all{
      .kind = FindingKind::kAllSlow, .since = step_sums_.since, .steps = step_sums_.steps, .members = 0};
  if (many && slow > 0) {
    all = found.front();
    all.kind = FindingKind::kAllSlow;
    all.place = -1;
    all.members = static_cast<int>(together);
    all.lost = all.own - all.typical;
    return {all};
  }
  if (slow > 0) return found;  // a member is nearer to the cause
  const Sums& sums = step_sums_;
  all.factor = sums.own / sums.typical;
  all.own = from_seconds(sums.own / sums.blocks);
  all.typical = from_seconds(sums.typical / sums.blocks);
  all.lost = all.own - all.typical;
  const bool computes = sums.compute >= sums.input && sums.compute >= sums.update;
  all.part = computes ? Part::kCompute : sums.update > sums.input ? Part::kUpdate : Part::kInput;
  if (std::log(all.factor) < std::log(settings_.factor) / 2 || all.lost < settings_.least_excess)
    return found;
  return {all};
}

}  // namespace paceline::stragglers
