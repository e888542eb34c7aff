#include "runtime/pserver/shard_map.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace paceline::pserver {
namespace {

TEST(ShardMap, CutsFromTheEndAndDealsRound) {
  const ShardMap map(100, 2, 128);  // 7 units of 16; 2 of them in a slice at most: 4 slices of 2, 2, 2 and 1
  ASSERT_EQ(map.slices(0).size(), 2u);
  EXPECT_EQ(map.slices(0)[0].begin, 80u);
  EXPECT_EQ(map.slices(0)[0].count, 20u);  // the last unit is cut short
  EXPECT_EQ(map.slices(1)[0].begin, 48u);
  EXPECT_EQ(map.slices(0)[1].begin, 16u);
  EXPECT_EQ(map.slices(0)[1].slab, 20u);
  EXPECT_EQ(map.slices(1)[1].begin, 0u);
  EXPECT_EQ(map.slices(1)[1].count, 16u);
  EXPECT_EQ(map.share(0), 52u);
  EXPECT_EQ(map.share(1), 48u);
}

TEST(ShardMap, RandomMapsAreDisjointCoveringBalancedAndOrdered) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 0);
    const std::size_t elements = rng.below(4) == 0 ? rng.below(40) : rng.below(50000);
    const int servers = static_cast<int>(1 + rng.below(7));
    const std::size_t slice_bytes = 1 + rng.below(8192);
    const ShardMap map(elements, servers, slice_bytes);
    std::vector<int> owner(elements, -1);
    std::size_t smallest = ~std::size_t{0}, largest = 0, total = 0;
    for (int s = 0; s < servers; ++s) {
      std::size_t slab = 0, last = elements + 1;
      for (const Slice& slice : map.slices(s)) {
        EXPECT_EQ(slice.server, s);
        EXPECT_EQ(slice.slab, slab) << "slices lie one behind the other";
        EXPECT_LE(slice.begin + slice.count, last) << "from the vector's end on";
        EXPECT_LE(slice.count * sizeof(float), std::max<std::size_t>(slice_bytes, 64));
        EXPECT_EQ(slice.begin % ShardMap::kAlignment, 0u);
        slab += slice.count;
        last = slice.begin + (slice.count == 0 ? 1 : 0);
        for (std::size_t i = slice.begin; i < slice.begin + slice.count; ++i) {
          ASSERT_EQ(owner[i], -1) << "element " << i << " has two owners";
          owner[i] = s;
        }
      }
      EXPECT_EQ(map.share(s), slab);
      EXPECT_EQ(map.slices(s).size(), map.slices(0).size());
      smallest = std::min(smallest, slab);
      largest = std::max(largest, slab);
      total += slab;
    }
    EXPECT_EQ(total, elements);
    EXPECT_LE(largest - smallest, 2 * ShardMap::kAlignment - 1) << "a unit, and what the last one lacks";

    // Pieces of any range are exactly it.
    for (int k = 0; k < 5; ++k) {
      std::size_t begin = rng.below(elements + 1), end = rng.below(elements + 1);
      if (begin > end) std::swap(begin, end);
      std::size_t expected_end = end;
      map.each_piece(begin, end, [&](int s, std::size_t at, std::size_t slab, std::size_t count) {
        ASSERT_EQ(at + count, expected_end);
        expected_end = at;
        const auto slice = std::find_if(map.slices(s).begin(), map.slices(s).end(), [&](const Slice& each) {
          return each.begin <= at && at + count <= each.begin + each.count;
        });
        ASSERT_NE(slice, map.slices(s).end());
        EXPECT_EQ(slab, slice->slab + (at - slice->begin));
      });
      EXPECT_EQ(expected_end, begin);
    }
  }
}

}  // namespace
}  // namespace paceline::pserver
