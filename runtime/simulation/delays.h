#pragma once

// How long workers take for a gradient: LogNormal(log_mean, log_deviation) milliseconds, drawn anew for each,
// and a few workers that are slower, always or until others have their places. Pure but for its seed.

#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace paceline::simulation {

struct DelayModel {
  double log_mean = 3;         // mu, of milliseconds: the median is e^mu
  double log_deviation = 0.1;  // sigma
  int slow_workers = 0;        // the last so many ...
  double slow_factor = 1;      // ... take so many times longer
  std::int64_t slow_turns = std::numeric_limits<std::int64_t>::max();  // ... for so many gradients
};

class Delays {
 public:
  // REQUIRES: workers >= 1. A worker's delays depend on the seed and its number alone.
  Delays(const DelayModel& model, int workers, std::uint64_t seed);
  double next_ms(int worker);

 private:
  DelayModel model_;
  std::vector<Rng> rngs_;
  std::vector<std::int64_t> turns_;  // of each worker
};

// E[T_(k)] for k = 1 to `count`: the mean of the k-th fastest of `count` draws, over `rounds` rounds, in
// milliseconds.
std::vector<double> order_statistics(const DelayModel& model, int count, int rounds, std::uint64_t seed);

// How many of `order.size()` workers are best spare: the b that makes (N-b) / E[T_(N-b)] the greatest, where
// N is all of them (Chen, Pan et al. 2016).
int best_backups(const std::vector<double>& order);

}  // namespace paceline::simulation
