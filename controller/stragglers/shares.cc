#include "controller/stragglers/shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

// Quotas in proportion to speeds; those beyond a bound are set to it, and the rest is shared out again, at
// most once for each member. Then whole samples by the largest remainder.

namespace paceline::stragglers {

namespace {

double speed(const Load& load) {
  return static_cast<double>(load.samples) / load.seconds;
}

// Sets those beyond a bound to it. False: there is none.
bool bound(double least, double most, std::vector<double>& quotas, std::vector<bool>& bounded) {
  double excess = 0;  // over `most`, less what is below `least`
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    if (!bounded[i]) excess += quotas[i] - std::clamp(quotas[i], least, most);
  }
  bool any = false;
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    // First those on the side that has more: the others may yet come back from theirs.
    const bool beyond = excess >= 0 ? quotas[i] > most : quotas[i] < least;
    if (bounded[i] || !beyond) continue;
    quotas[i] = excess >= 0 ? most : least;
    bounded[i] = any = true;
  }
  return any;
}

std::vector<double> quotas_of(std::span<const Load> loads, double batch, double most) {
  std::vector<double> quotas(loads.size());
  std::vector<bool> bounded(loads.size(), false);
  do {
    double left = batch, speeds = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      if (bounded[i]) {
        left -= quotas[i];
      } else {
        speeds += speed(loads[i]);
      }
    }
    for (std::size_t i = 0; i < loads.size(); ++i) {
      if (!bounded[i]) quotas[i] = left * speed(loads[i]) / speeds;
    }
  } while (bound(1, most, quotas, bounded));
  return quotas;
}

}  // namespace

std::vector<std::int64_t> even_shares(std::int64_t batch, int members) {
  std::vector<std::int64_t> samples;
  std::int64_t before = 0;
  double shares = 0;  // summed up as the ledger does, so that it is rounded alike
  for (int i = 1; i <= members; ++i) {
    shares += 1.0 / members;
    const std::int64_t to = i == members ? batch : std::llround(static_cast<double>(batch) * shares);
    samples.push_back(to - before);
    before = to;
  }
  return samples;
}

std::vector<std::int64_t> shares_by_speed(std::span<const Load> loads) {
  std::int64_t batch = 0;
  for (const Load& load : loads) batch += load.samples;
  const double even = static_cast<double>(batch) / static_cast<double>(loads.size());
  const std::vector<double> quotas =
      quotas_of(loads, static_cast<double>(batch), std::ceil(kMostOfEven * even));
  const bool nearly_even =
      std::ranges::all_of(quotas, [&](double quota) { return std::abs(quota - even) <= kNearlyEven * even; });
  if (nearly_even) return even_shares(batch, static_cast<int>(loads.size()));
  constexpr double kRounding = 1e-9;  // of a whole quota
  std::vector<std::int64_t> samples;
  for (const double quota : quotas)
    samples.push_back(static_cast<std::int64_t>(std::floor(quota * (1 + kRounding))));
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rest = [&](std::size_t i) { return quotas[i] - static_cast<double>(samples[i]); };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return rest(a) > rest(b); });
  std::int64_t left = batch - std::accumulate(samples.begin(), samples.end(), std::int64_t{0});
  for (const std::size_t i : order) {
    if (left <= 0) break;
    ++samples[i];
    --left;
  }
  return samples;
}

double longest(std::span<const Load> loads) {
  double most = 0;
  for (const Load& load : loads) most = std::max(most, load.seconds);
  return most;
}

double longest_with(std::span<const Load> loads, std::span<const std::int64_t> samples) {
  double most = 0;
  for (std::size_t i = 0; i < loads.size(); ++i)
    most = std::max(most, static_cast<double>(samples[i]) / speed(loads[i]));
  return most;
}

}  // namespace paceline::stragglers
