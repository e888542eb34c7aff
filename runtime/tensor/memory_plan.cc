#include "runtime/tensor/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace paceline::tensor {

namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t current : order) {
    const std::size_t bytes = aligned(lifetimes[current].bytes);
    std::size_t best = 0;
    std::size_t best_gap = std::numeric_limits<std::size_t>::max();
    std::size_t end = 0;  // of the neighbours so far
    for (const std::size_t other : placed) {
      if (!overlap(lifetimes[current], lifetimes[other])) continue;
      const std::size_t begin = plan.offsets[other];
      if (begin >= end + bytes && begin - end < best_gap) {
        best = end;
        best_gap = begin - end;
      }
      end = std::max(end, begin + aligned(lifetimes[other].bytes));
    }
    plan.offsets[current] = best_gap == std::numeric_limits<std::size_t>::max() ? end : best;
    plan.bytes = std::max(plan.bytes, plan.offsets[current] + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), current,
                                   [&](auto a, auto b) { return plan.offsets[a] < plan.offsets[b]; }),
                  current);
  }
  return plan;
}

}  // namespace paceline::tensor
