#include "runtime/tensor/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace paceline::tensor {
namespace {

TEST(MemoryPlan, NothingNeedsNothing) {
  EXPECT_EQ(plan_memory({}).bytes, 0u);
}

TEST(MemoryPlan, DisjointLifetimesShareMemory) {
  const MemoryPlan plan = plan_memory({{300, 0, 1}, {512, 2, 3}, {64, 4, 9}});
  EXPECT_EQ(plan.bytes, 512u);
  EXPECT_EQ(plan.offsets, (std::vector<std::size_t>{0, 0, 0}));
}

TEST(MemoryPlan, BothEndsOfALifeCount) {
  EXPECT_EQ(plan_memory({{256, 0, 2}, {256, 2, 3}}).bytes, 512u);
}

TEST(MemoryPlan, AGapIsFilled) {
  // A chain: the third fits where the first was.
  const MemoryPlan plan = plan_memory({{256, 0, 1}, {512, 1, 3}, {256, 2, 3}});
  EXPECT_EQ(plan.bytes, 768u);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
}

// Those alive together never overlap; the arena is no smaller than the most that is alive at once, and no
// larger than the sum.
TEST(MemoryPlan, RandomLifetimesNeverOverlap) {
  constexpr std::uint64_t kSeed = 11;
  for (std::uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed 11 round " + std::to_string(round));
    Rng rng(kSeed, round);
    std::vector<Lifetime> lives(1 + rng.below(40));
    for (auto& life : lives) {
      life.first = rng.below(30);
      life.last = life.first + rng.below(30 - life.first + 1);
      life.bytes = rng.below(5000);
    }
    const MemoryPlan plan = plan_memory(lives);
    std::size_t sum = 0;
    std::size_t most = 0;
    const auto rounded = [](std::size_t bytes) {
      return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    };
    for (std::size_t at = 0; at <= 30; ++at) {
      std::size_t alive = 0;
      for (const auto& life : lives) alive += life.first <= at && at <= life.last ? rounded(life.bytes) : 0;
      most = std::max(most, alive);
    }
    for (std::size_t i = 0; i < lives.size(); ++i) {
      sum += rounded(lives[i].bytes);
      EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0u);
      EXPECT_LE(plan.offsets[i] + lives[i].bytes, plan.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        if (lives[i].first > lives[j].last || lives[j].first > lives[i].last) continue;
        EXPECT_TRUE(plan.offsets[i] + lives[i].bytes <= plan.offsets[j] ||
                    plan.offsets[j] + lives[j].bytes <= plan.offsets[i]);
      }
    }
    EXPECT_GE(plan.bytes, most);
    EXPECT_LE(plan.bytes, sum);
  }
}

}  // namespace
}  // namespace paceline::tensor
