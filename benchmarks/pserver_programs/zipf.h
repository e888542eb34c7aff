#pragma once

// Batches of rows as click logs have them: few that are in most batches, and a long tail.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace bench {

// Zipf's law over [0, rows): rank k with a weight of 1 / (k + 1)^0.99, by the integral of that, which is
// close enough and needs no table.
class Zipf {
 public:
  Zipf(std::uint64_t rows, std::uint64_t seed)
      : rng_(seed, 1), rows_(static_cast<double>(rows)), most_(std::pow(rows_ + 1, kPower) - 1) {}
  // The ranks are scattered over the ids [0, rows).
  std::uint64_t next() {
    const double u = static_cast<double>(rng_.next_u64() >> 11) * 0x1.0p-53;
    const double rank = std::min(rows_ - 1, std::floor(std::pow(u * most_ + 1, 1 / kPower) - 1));
    return paceline::mix64(static_cast<std::uint64_t>(rank)) % static_cast<std::uint64_t>(rows_);
  }

 private:
  static constexpr double kPower = 1 - 0.99;
  paceline::Rng rng_;
  const double rows_, most_;
};

// Different ones, sorted.
inline std::vector<std::uint64_t> batch_of(Zipf& zipf, std::size_t count) {
  std::vector<std::uint64_t> ids;
  while (ids.size() < count) {
    while (ids.size() < count) ids.push_back(zipf.next());
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }
  return ids;
}

}  // namespace bench
