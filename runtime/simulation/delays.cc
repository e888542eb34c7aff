#include "runtime/simulation/delays.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace paceline::simulation {

Delays::Delays(const DelayModel& model, int workers, std::uint64_t seed)
    : model_(model), turns_(static_cast<std::size_t>(std::max(workers, 1))) {
  PL_CHECK(workers >= 1, "somebody works");
  rngs_.reserve(static_cast<std::size_t>(workers));
  for (int worker = 0; worker < workers; ++worker)
    rngs_.emplace_back(seed, static_cast<std::uint64_t>(worker));
}

double Delays::next_ms(int worker) {
  const int workers = static_cast<int>(rngs_.size());
  const double normal = static_cast<double>(rngs_.at(static_cast<std::size_t>(worker)).normal());
  const bool slow = worker >= workers - model_.slow_workers &&
                    turns_[static_cast<std::size_t>(worker)]++ < model_.slow_turns;
  const double factor = slow ? model_.slow_factor : 1;
  return factor * std::exp(model_.log_mean + model_.log_deviation * normal);
}

std::vector<double> order_statistics(const DelayModel& model, int count, int rounds, std::uint64_t seed) {
  Delays delays(model, count, seed);
  std::vector<double> sums(static_cast<std::size_t>(count)), drawn(sums.size());
  for (int round = 0; round < rounds; ++round) {
    for (int worker = 0; worker < count; ++worker)
      drawn[static_cast<std::size_t>(worker)] = delays.next_ms(worker);
    std::sort(drawn.begin(), drawn.end());
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += drawn[k];
  }
  for (double& sum : sums) sum /= rounds;
  return sums;
}

int best_backups(const std::vector<double>& order) {
  const auto rate = [&](std::size_t needed) { return static_cast<double>(needed) / order[needed - 1]; };
  std::size_t best = order.size();
  for (std::size_t needed = order.size(); needed >= 1; --needed) {
    if (rate(needed) > rate(best)) best = needed;
  }
  return static_cast<int>(order.size() - best);
}

}  // namespace paceline::simulation
