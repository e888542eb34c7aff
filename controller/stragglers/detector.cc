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
constexpr std::size_t kSums = 6;  // of a member: three measures, each with two

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
    case Part::kTransfer:
      return "transfer";
  }
  return "";
}

void Detector::Told::halve() {
  for (double* sum : {&blocks, &own, &busy, &typical_own, &typical_busy}) *sum /= 2;
}

void Detector::Sums::halve() {
  steps /= 2;
  for (double* sum : {&blocks, &waits_less, &own_log, &busy_log, &rate_log, &own, &busy, &typical_own,
                      &typical_busy, &typical_step})
    *sum /= 2;
  for (double& sum : excess) sum /= 2;
}

void Detector::Measure::add(double value, std::size_t members) {
  early.push_back(value);
  if (!noise.is_known()) return;
  width = std::max(kLeastWidth, noise.width());
  for (const double each : std::exchange(early, {})) series.add(each, width, threshold_of(kSums * members));
}

double Detector::Measure::mean_of_latest() const {
  return std::accumulate(latest.begin(), latest.end(), 0.0) / kLatest;
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
  std::erase_if(findings_, [place](const Finding& each) { return each.place == place; });
}

void Detector::begin_anew() {
  *this = Detector(settings_);
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
    return a.kind == b.kind && a.place == b.place && a.part == b.part && (a.members == 0) == (b.members == 0);
  };
  return !std::ranges::equal(before, findings_, same);
}

std::vector<Standing> Detector::standings() const {
  std::vector<Standing> all;
  for (const int place : places_) {
    const Member& member = members_[static_cast<std::size_t>(place)];
    std::array<double, kLatest> ratios = member.ratios;
    std::ranges::sort(ratios);
    const double excess =
        std::max(member.sums.own - member.sums.typical_own, member.sums.busy - member.sums.typical_busy) /
        std::max(1.0, member.sums.blocks);
    all.push_back({.place = place,
                   .ratio = std::exp(median_of_sorted(ratios)),
                   .evidence = std::max({member.own.series.evidence(), member.busy.series.evidence(),
                                         member.rate.series.evidence()}),
                   .excess = from_seconds(std::max(0.0, excess)),
                   .found = member.found.has_value()});
  }
  return all;
}

std::vector<double> Detector::own_times() const {
  std::vector<double> all;
  for (const int place : places_) {
    const Member& member = members_[static_cast<std::size_t>(place)];
    if (member.times < kLeastBlocks) return {};
    std::array<double, kLeastBlocks> times = member.own_times;
    std::ranges::sort(times);
    all.push_back(median_of_sorted(times));
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
                        .transfer = median_of([](const Row& r) { return r.transfer; }),
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
  const auto busy_of = [](const Row& row) { return log_of(row.own() + row.transfer); };
  const auto busy = sorted_of(block, busy_of);
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    const Row& row = block.rows[rank];
    if (!tells(row)) continue;
    const Logs logs{.own = log_of(row.own()) - median_without(own, log_of(row.own())),
                    .busy = busy_of(row) - median_without(busy, busy_of(row)),
                    .rate = rate_of(row) - median_without(rates, rate_of(row))};
    judge_member(member(places_[rank]), block, row, logs, typical);
  }
}

void Detector::judge_member(Member& member, const Block& block, const Row& row, Logs logs,
                            const Typical& typical) {
  member.own.noise.add(logs.own);
  member.busy.noise.add(logs.busy);
  member.rate.noise.add(logs.rate);
  member.ratios[member.count++ % kLatest] = logs.own;
  member.own_times[member.times++ % kLeastBlocks] = row.own();
  const double busy = row.own() + row.transfer, others_own = std::exp(log_of(row.own()) - logs.own),
               others_busy = std::exp(log_of(busy) - logs.busy);
  // An excess of less than half of what matters counts as none: so a finding ends, too, where steps become
  // short.
  const auto is_nothing = [&](double excess) {
    return 2 * from_seconds(excess) < settings_.least_excess || 2 * excess < kLeastShare * typical.step;
  };
  if (is_nothing(row.own() - others_own)) {
    logs.own = std::min(logs.own, 0.0);
    logs.rate = std::min(logs.rate, 0.0);
  }
  if (is_nothing(busy - others_busy)) logs.busy = std::min(logs.busy, 0.0);
  member.own.add(logs.own, places_.size());
  member.busy.add(logs.busy, places_.size());
  member.rate.add(logs.rate, places_.size());
  Sums& sums = member.sums;
  const bool rises = member.own.series.rises() || member.busy.series.rises() || member.rate.series.rises() ||
                     !member.own.noise.is_known();
  if (!rises) sums = {};
  if (sums.blocks == 0) sums.since = block.begin;
  if (sums.blocks >= 2 * Sums::kMostBlocks) sums.halve();
  sums.blocks += 1;
  sums.steps += block.end - block.begin;
  if (row.wait <= typical.wait) sums.waits_less += 1;
  const auto clipped = [most = 2 * std::log(settings_.factor)](Measure& measure, double value) {
    const double bound = std::max(most, kClip * measure.width);
    const double counted = std::clamp(value, -bound, bound);
    measure.latest[measure.count++ % kLatest] = counted;
    return counted;
  };
  sums.own_log += clipped(member.own, logs.own);
  sums.busy_log += clipped(member.busy, logs.busy);
  sums.rate_log += clipped(member.rate, logs.rate);
  sums.own += row.own();
  sums.busy += busy;
  sums.typical_own += others_own;
  sums.typical_busy += others_busy;
  sums.typical_step += typical.step;
  Told& told = sums.told;
  if (told.blocks >= 2 * Told::kMostBlocks) told.halve();
  told.blocks += 1;
  told.own += row.own();
  told.busy += busy;
  told.typical_own += others_own;
  told.typical_busy += others_busy;
  sums.excess[static_cast<std::size_t>(Part::kInput)] += row.input - typical.input;
  sums.excess[static_cast<std::size_t>(Part::kCompute)] += row.compute - typical.compute;
  sums.excess[static_cast<std::size_t>(Part::kUpdate)] += row.update - typical.update;
  sums.excess[static_cast<std::size_t>(Part::kTransfer)] += row.transfer - typical.transfer;
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
  StepSums& sums = step_sums_;
  if (!step_.rises()) sums = {};
  if (sums.blocks == 0) sums.since = block.begin;
  sums.blocks += 1;
  sums.steps += block.end - block.begin;
  sums.step += std::exp(step);
  sums.usual += std::exp(usual_step_);
  sums.input += typical.input;
  sums.compute += typical.compute;
  sums.update += typical.update;
}

bool Detector::is_found(const Sums& sums, const Measure& measure, double sum, double excess) const {
  return measure.series.slow() && sums.blocks >= kLeastBlocks &&
         is_above(settings_.factor, sum, sums.blocks, measure.width) &&
         measure.mean_of_latest() >= std::log(settings_.factor) / 2 &&
         from_seconds(excess / sums.blocks) >= settings_.least_excess &&
         excess >= kLeastShare * sums.typical_step && sums.waits_less >= kLeastWaiting * sums.blocks;
}

void Detector::judge(Member& member) const {
  const Sums& sums = member.sums;
  const bool own = is_found(sums, member.own, sums.own_log, sums.own - sums.typical_own) ||
                   is_found(sums, member.rate, sums.own_log, sums.own - sums.typical_own);
  const bool for_its_work =
      member.rate.series.slow() && is_above(settings_.factor, sums.rate_log, sums.blocks, member.rate.width);
  const bool more_work = is_below(settings_.factor, sums.rate_log, sums.blocks, member.rate.width);
  const bool busy = is_found(sums, member.busy, sums.busy_log, sums.busy - sums.typical_busy);
  if (!member.own.series.slow() && !member.rate.series.slow() && !member.busy.series.slow()) {
    member.found.reset();
  } else if (own && for_its_work) {
    member.found = FindingKind::kSlow;
    member.by_busy = false;
  } else if (!member.found && own && more_work) {
    member.found = FindingKind::kMoreWork;
    member.by_busy = false;
  } else if (!member.found && busy && !member.own.series.suspect()) {
    member.found = FindingKind::kSlow;
    member.by_busy = true;
  }
}

Finding Detector::finding_of(int place, const Member& member) const {
  const Sums& sums = member.sums;
  const Told& told = sums.told;
  const double own = (member.by_busy ? told.busy : told.own) / told.blocks;
  const double typical = (member.by_busy ? told.typical_busy : told.typical_own) / told.blocks;
  return {.kind = *member.found,
          .place = place,
          .part = static_cast<Part>(std::ranges::max_element(sums.excess) - sums.excess.begin()),
          .factor = own / typical,
          .since = sums.since,
          .steps = sums.steps,
          .own = from_seconds(own),
          .typical = from_seconds(typical)};
}

bool Detector::is_slow_now(const Member& member) const {
  const Measure& measure = member.by_busy ? member.busy : member.own;
  return measure.mean_of_latest() >= std::log(settings_.factor) / 2;
}

// The places of those that are slow at once, where they are so many that it is nobody's fault; else none.
// Several that become slow at once are found one after the other: so whoever is suspected counts. But where
// one was found before, others have to be found, too, and all of them have to be slow in the latest blocks.
// It lasts until fewer are suspected: what begins and what ends it differ, so that it does not come and go.
std::vector<int> Detector::slow_together(std::span<const Finding> found) const {
  const auto had = [&](FindingKind kind) {
    return std::ranges::any_of(findings_,
                               [&](const Finding& each) { return each.kind == kind && each.members > 0; });
  };
  const bool lasts = had(FindingKind::kAllSlow), known = had(FindingKind::kSlow);
  std::vector<int> together;
  for (const int place : places_) {
    const Member& member = members_[static_cast<std::size_t>(place)];
    const bool is_found = std::ranges::any_of(
        found, [&](const Finding& each) { return each.place == place && each.kind == FindingKind::kSlow; });
    const bool is_suspect = member.own.series.suspect() || member.busy.series.suspect();
    if (known ? is_found && is_slow_now(member) : is_found || is_suspect) together.push_back(place);
  }
  const std::size_t count = together.size(), all = places_.size();
  // There has to be somebody whom they are slower than.
  const bool many = count >= 2 && 3 * count >= all && (lasts ? all > 2 : count < all);
  return many ? together : std::vector<int>();
}

std::vector<Finding> Detector::find() {
  std::vector<Finding> found;
  double longest = 0, second = 0;  // own times of a step
  for (const int place : places_) {
    Member& member = members_[static_cast<std::size_t>(place)];
    judge(member);
    const Told& told = member.sums.told;
    const double own = (member.by_busy ? told.busy : told.own) / std::max(1.0, told.blocks);
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
  const std::vector<int> together = slow > 0 ? slow_together(found) : std::vector<int>();
  if (!step_.slow() && together.empty()) return found;
  Finding all{
      .kind = FindingKind::kAllSlow, .since = step_sums_.since, .steps = step_sums_.steps, .members = 0};
  if (!together.empty()) {
    all = found.front();
    all.kind = FindingKind::kAllSlow;
    all.place = -1;
    all.members = static_cast<int>(together.size());
    all.places = together;
    all.lost = all.own - all.typical;
    return {all};
  }
  if (slow > 0) return found;  // a member is nearer to the cause
  const StepSums& sums = step_sums_;
  all.factor = sums.step / sums.usual;
  all.own = from_seconds(sums.step / sums.blocks);
  all.typical = from_seconds(sums.usual / sums.blocks);
  all.lost = all.own - all.typical;
  const bool computes = sums.compute >= sums.input && sums.compute >= sums.update;
  all.part = computes ? Part::kCompute : sums.update > sums.input ? Part::kUpdate : Part::kInput;
  if (std::log(all.factor) < std::log(settings_.factor) / 2 || all.lost < settings_.least_excess)
    return found;
  return {all};
}

}  // namespace paceline::stragglers
