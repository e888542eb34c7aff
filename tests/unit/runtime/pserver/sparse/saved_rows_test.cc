#include "runtime/pserver/sparse/saved_rows.h"

#include <gtest/gtest.h>

#include <array>

namespace paceline::pserver::sparse {
namespace {

constexpr std::size_t kFloats = 6;

void put(KeptRows& kept, std::uint64_t number) {
  std::array<float, kFloats> row{};
  row.fill(static_cast<float>(number));
  kept.append(number * 3, static_cast<std::int64_t>(number), 1, 2, row);
}

// `rows` goes on from row `next`.
void check(const SavedRows& rows, std::uint64_t& next) {
  ASSERT_EQ(rows.floats.size(), rows.size() * kFloats);
  for (std::size_t k = 0; k < rows.size(); ++k, ++next) {
    ASSERT_EQ(rows.ids[k], next * 3);
    ASSERT_EQ(rows.last[k], static_cast<std::int64_t>(next));
    ASSERT_EQ(rows.floats[k * kFloats + kFloats - 1], static_cast<float>(next));
  }
}

TEST(KeptRows, ComeOutAsTheyWentIn) {
  KeptRows kept(kFloats);
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(kept.bytes(), 0u);
  for (std::uint64_t n = 0; n < 20'000; ++n) put(kept, n);
  SavedRows rows;
  std::uint64_t next = 0;
  for (std::size_t most = 1; !kept.empty(); most = most * 2 + 1) {
    rows.clear();
    kept.take(most, rows);
    EXPECT_LE(rows.size(), most);
    check(rows, next);
  }
  EXPECT_EQ(next, 20'000u);
  EXPECT_EQ(kept.bytes(), 0u);
  kept.take(5, rows);
  put(kept, 7);
  kept.clear();
  EXPECT_TRUE(kept.empty());
}

// Rows come as fast as they go, and there are always some left.
TEST(KeptRows, ABacklogThatNeverEndsTakesNoMoreMemory) {
  KeptRows kept(kFloats);
  constexpr std::uint64_t kWaiting = 1000, kAtATime = 100;
  std::uint64_t in = 0, out = 0;
  for (; in < kWaiting; ++in) put(kept, in);
  const std::uint64_t row_bytes = kFloats * sizeof(float) + SavedRows::kNoteBytes;
  SavedRows rows;
  for (int round = 0; round < 3000; ++round) {
    for (const std::uint64_t end = in + kAtATime; in < end; ++in) put(kept, in);
    rows.clear();
    kept.take(kAtATime, rows);
    check(rows, out);
    ASSERT_FALSE(kept.empty());
    ASSERT_GE(kept.bytes(), kWaiting * row_bytes);
    ASSERT_LE(kept.bytes(), (kWaiting + kAtATime) * row_bytes + 2 * KeptRows::kBlockBytes)
        << "round " << round;
  }
}

TEST(SavedRows, ARowIsTakenFromAnother) {
  SavedRows from, to;
  for (std::uint64_t n = 0; n < 3; ++n) {
    const std::array<float, 2> row = {static_cast<float>(n), 10};
    from.append(n + 5, 7, 8, static_cast<std::uint32_t>(n), row);
  }
  to.append(from, 2, 1);
  to.append(from, 0, 1);
  EXPECT_EQ(to.ids, (std::vector<RowId>{7, 5}));
  EXPECT_EQ(to.steps, (std::vector<std::uint32_t>{2, 0}));
  EXPECT_EQ(to.uses, (std::vector<std::uint32_t>{8, 8}));
  EXPECT_EQ(to.last, (std::vector<std::int64_t>{7, 7}));
  EXPECT_EQ(to.floats, (std::vector<float>{2, 0}));
  to.clear();
  EXPECT_EQ(to.size(), 0u);
}

}  // namespace
}  // namespace paceline::pserver::sparse
