#include "cli/view/gradients_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/text.h"
#include "cli/view/fit_columns.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

namespace {

// Staleness is counted one by one, the last count being of all that is more, and shown in buckets that
// double: a line has room for them, and what differs by so little is alike.
constexpr std::size_t kCounts = 32;
constexpr std::size_t kBucketEnds[] = {0, 1, 2, 4, 8, 16, kCounts - 2, kCounts - 1};

constexpr int kMostLines = 2;

// All workers' gradients together.
struct Sums {
  std::int64_t applied = 0, dropped = 0, max = 0;
  double staleness = 0;
  bool told = false;
  std::vector<std::int64_t> counts = std::vector<std::int64_t>(kCounts);
};

Sums sums_of(const RunState& state) {
  Sums sums;
  for (const api::MemberStatus& member : state.members) {
    if (!member.telemetry.staleness) continue;
    const StalenessTelemetry& s = *member.telemetry.staleness;
    sums.told = true;
    sums.applied += s.applied;
    sums.dropped += s.dropped;
    sums.max = std::max(sums.max, s.max);
    sums.staleness += s.mean * static_cast<double>(s.applied);
    for (std::size_t i = 0; i < s.histogram.size(); ++i)
      sums.counts[std::min(i, kCounts - 1)] += std::max<std::int64_t>(s.histogram[i], 0);
  }
  return sums;
}

// A part that is neither nothing nor all never looks so.
std::string percent(double part, double whole) {
  const double percents = whole > 0 ? 100 * part / whole : 0;
  if (percents > 0 && percents < 1) return "<1 %";
  if (percents > 99 && percents < 100) return ">99 %";
  return fixed(percents, 0) + " %";
}

struct Share {
  std::string text;  // "3-4: 5 %"
  std::int64_t count = 0;
};

// Of the buckets that are not empty; none where no gradient was stale.
std::vector<Share> shares_of(const Sums& sums, std::int64_t all) {
  std::vector<Share> shares;
  if (all == sums.counts[0]) return shares;
  std::size_t begin = 0;
  for (const std::size_t end : kBucketEnds) {
    std::int64_t count = 0;
    for (std::size_t i = begin; i <= end; ++i) count += sums.counts[i];
    const std::string name = end == kCounts - 1 ? str_cat(end, "+")
                             : begin == end     ? str_cat(end)
                                                : str_cat(begin, "-", end);
    if (count > 0)
      shares.push_back(
          {str_cat(name, ": ", percent(static_cast<double>(count), static_cast<double>(all))), count});
    begin = end + 1;
  }
  return shares;
}

std::int64_t total(const Sums& sums) {
  std::int64_t all = 0;
  for (const std::int64_t count : sums.counts) all += count;
  return all;
}

std::string dropped_text(const Sums& sums) {
  if (!sums.told) return "";
  if (sums.dropped == 0) return "; none came too late";
  const std::int64_t all = sums.applied + sums.dropped;
  return str_cat("; ", with_commas(sums.dropped), " of ", with_commas(all), " gradients (",
                 percent(static_cast<double>(sums.dropped), static_cast<double>(all)),
                 ") came too late and were dropped");
}

}  // namespace

std::optional<StepGradients> step_gradients(const api::TrainingJob& job) {
  const api::Strategy& strategy = job.spec.strategy;
  if (strategy.type != api::StrategyType::kParameterServer || !job.spec.training ||
      strategy.synchronization != api::Synchronization::kSynchronous)
    return std::nullopt;
  const std::int64_t counted = api::gradients_per_step(job), workers = api::trainer_count(job);
  const std::int64_t parts = api::units_per_step(job), batch = job.spec.training->global_batch_size;
  if (counted >= workers || parts < 1) return std::nullopt;
  return StepGradients{.counted = counted,
                       .workers = workers,
                       .samples = static_cast<double>(batch * counted) / static_cast<double>(parts),
                       .batch = batch};
}

double samples_per_step(const api::TrainingJob& job) {
  if (!job.spec.training) return 0;
  const auto gradients = step_gradients(job);
  return gradients ? gradients->samples : static_cast<double>(job.spec.training->global_batch_size);
}

std::string samples_text(const StepGradients& gradients) {
  const auto batch = static_cast<double>(gradients.batch);
  if (gradients.samples >= batch) return str_cat("all ", with_commas(gradients.batch), " samples");
  const double rounded = std::round(gradients.samples);
  return str_cat(rounded == gradients.samples ? "" : "about ",
                 with_commas(static_cast<std::int64_t>(rounded)), " of ", with_commas(gradients.batch),
                 " samples (", percent(gradients.samples, batch), ")");
}

std::string step_text(const StepGradients& gradients) {
  return str_cat("each step counts the first ",
                 gradients.counted == 1 ? std::string("gradient") : with_commas(gradients.counted), " of ",
                 with_commas(gradients.workers),
                 gradients.counted == 1 ? ": " : " gradients: ", samples_text(gradients));
}

std::string gradients_text(const RunState& state) {
  return state.gradients ? step_text(*state.gradients) + dropped_text(sums_of(state)) : "";
}

std::string staleness_text(const RunState& state) {
  const Sums sums = sums_of(state);
  if (sums.max <= 0 || sums.applied <= 0) return "";
  const std::int64_t all = total(sums);
  std::string text;
  for (const Share& share : shares_of(sums, all)) text += (text.empty() ? "" : ", ") + share.text;
  if (!text.empty()) text += str_cat(" of ", with_commas(all), " gradients; ");
  return str_cat(text, "mean ", fixed(sums.staleness / static_cast<double>(sums.applied), 2), ", most ",
                 with_commas(sums.max));
}

std::vector<std::string> staleness_lines(const RunState& state, int width) {
  const Sums sums = sums_of(state);
  const std::int64_t all = total(sums);
  std::vector<Share> shares = shares_of(sums, all);
  if (shares.empty()) return {};
  std::vector<std::int64_t> order;
  for (const Share& share : shares) order.push_back(share.count);
  std::ranges::sort(order);
  std::vector<Piece> pieces = {{str_cat("staleness of ", with_commas(all), " gradients:")}};
  for (Share& share : shares) {
    const auto rank = std::ranges::find(order, share.count) - order.begin();
    pieces.push_back({std::move(share.text), 1 + static_cast<int>(rank)});
  }
  return fit_lines(std::move(pieces), width, kMostLines);
}

}  // namespace paceline::cli
