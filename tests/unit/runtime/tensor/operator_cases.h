#pragma once

// Graphs for every operator and every path of its gradient, on random shapes.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "runtime/tensor/graph.h"

namespace paceline::tensor {

inline constexpr std::uint64_t kSeed = 20260131;

struct Random {
  Rng rng;
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
  }
};

using Build = std::function<void(GraphBuilder&, Random&)>;

struct Case {
  std::string name;
  Build build;
};

std::vector<Case> operator_cases();

}  // namespace paceline::tensor
