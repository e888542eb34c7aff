#include "runtime/pserver/sparse/row_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/rng.h"

namespace paceline::pserver::sparse {
namespace {

std::uint32_t find(const RowIndex& index, std::uint64_t hash, std::uint32_t row) {
  return index.find(hash, [&](std::uint32_t each) { return each == row; });
}

TEST(RowIndex, KnowsWhatAMapKnows) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 0);
    RowIndex index;
    std::unordered_map<std::uint32_t, std::uint64_t> oracle;  // row -> hash
    std::vector<std::uint32_t> rows;
    std::uint32_t next = 0;
    const std::uint64_t most = 1 + rng.below(30'000);
    for (int k = 0; k < 60'000; ++k) {
      if (rows.size() < most && (rows.empty() || rng.below(3) != 0)) {
        const std::uint64_t hash = rng.next_u64();
        ASSERT_EQ(find(index, hash, next), RowIndex::kNone);
        ASSERT_TRUE(index.insert(hash, next).ok());
        oracle[next] = hash;
        rows.push_back(next++);
      } else {
        std::swap(rows[rng.below(rows.size())], rows.back());
        const std::uint32_t row = rows.back();
        rows.pop_back();
        index.erase(oracle[row], row);
        ASSERT_EQ(find(index, oracle[row], row), RowIndex::kNone);
        oracle.erase(row);
      }
    }
    ASSERT_EQ(index.rows(), oracle.size());
    for (const auto& [row, hash] : oracle) ASSERT_EQ(find(index, hash, row), row);
  }
}

TEST(RowIndex, AnEmptyOneFindsNothing) {
  const RowIndex index;
  EXPECT_EQ(find(index, 12345, 0), RowIndex::kNone);
  EXPECT_EQ(index.rows(), 0u);
}

TEST(RowIndex, GrowsBySplitsAndStaysSmall) {
  Rng rng(9, 0);
  RowIndex index;
  constexpr std::uint32_t kRows = 300'000;
  std::uint64_t splits = 0;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    ASSERT_TRUE(index.insert(rng.next_u64(), row).ok());
    EXPECT_LE(index.splits() - splits, 1u) << "one insertion splits one segment";
    splits = index.splits();
  }
  EXPECT_GT(splits, 100u);
  EXPECT_LT(index.bytes(), kRows * 20u);
}

// Ids that were chosen so that their hashes agree in all bits that are kept: slow, and nothing worse.
TEST(RowIndex, CollidingHashesAreKept) {
  RowIndex index;
  constexpr std::uint32_t kSame = 3000;
  for (std::uint32_t row = 0; row < kSame; ++row) {
    ASSERT_TRUE(index.insert((std::uint64_t{row} << 32) | 0x12345678u, row).ok());
  }
  EXPECT_LT(index.bytes(), std::uint64_t{32} << 20);
  for (std::uint32_t row = 0; row < kSame; row += 2) index.erase(0x12345678u, row);
  for (std::uint32_t row = 0; row < kSame; ++row) {
    ASSERT_EQ(find(index, 0x12345678u, row), row % 2 == 0 ? RowIndex::kNone : row);
  }
  EXPECT_EQ(index.rows(), kSame / 2);
}

}  // namespace
}  // namespace paceline::pserver::sparse
