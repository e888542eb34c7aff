#include "runtime/pserver/sparse/hot_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/rng.h"

namespace paceline::pserver::sparse {
namespace {

using ::testing::ElementsAre;

TEST(HotRows, FewRowsAreCountedExactly) {
  HotRows hot;
  EXPECT_TRUE(hot.hottest(8).empty());
  const RowId ids[] = {5, 7, 5, 9, 5, 7, 1};
  hot.count(ids);
  hot.count(ids);
  EXPECT_THAT(hot.hottest(3), ElementsAre(HotRows::Row{5, 6}, HotRows::Row{7, 4}, HotRows::Row{1, 2}));
}

// Every tenth pull is of row 1, every twentieth of row 2, the others of rows that never come again.
TEST(HotRows, FindsTheHotAmongManyCold) {
  HotRows hot;
  Rng rng(4, 0);
  RowId fresh = 1000;
  std::int64_t pulls = 0;
  for (int batch = 0; batch < 400; ++batch) {
    std::vector<RowId> ids;
    for (int k = 0; k < 1000; ++k, ++pulls) {
      const std::uint64_t draw = rng.below(20);
      ids.push_back(draw < 2 ? 1 : draw < 3 ? 2 : ++fresh);
    }
    hot.count(ids);
  }
  const auto rows = hot.hottest(8);
  ASSERT_EQ(rows.size(), 2u) << "of the others none is hot";
  EXPECT_EQ(rows[0].id, 1u);
  EXPECT_EQ(rows[1].id, 2u);
  EXPECT_NEAR(rows[0].pulls, pulls / 10, pulls / 100) << "the sampling, and error()";
  EXPECT_NEAR(rows[1].pulls, pulls / 20, pulls / 100);
  EXPECT_LE(hot.error(), 2 * pulls / static_cast<std::int64_t>(HotRows::kCounters));
}

// A batch has each of its rows once, so that no row is a large part of all pulls: 300 values are in every
// batch, and 700 others are drawn from many.
TEST(HotRows, RowsOfEveryBatchAreHotAlthoughABatchHasManyRows) {
  HotRows hot;
  Rng rng(5, 0);
  constexpr int kBatches = 4000;
  for (int batch = 0; batch < kBatches; ++batch) {
    std::vector<RowId> ids;
    for (RowId id = 0; id < 300; ++id) ids.push_back(id << 40);
    for (int k = 0; k < 700; ++k) ids.push_back(1 + rng.below(10'000'000));
    hot.count(ids);
  }
  const auto rows = hot.hottest(400);
  EXPECT_EQ(rows.size(), 300u);
  for (const HotRows::Row& row : rows) {
    EXPECT_EQ(row.id % (RowId{1} << 40), 0u);
    EXPECT_NEAR(row.pulls, kBatches, kBatches / 2) << row.id;
  }
}

// Before sampling begins the bounds are exact.
TEST(HotRows, ACountIsNeverTooLargeAndTooSmallByAtMostTheError) {
  HotRows hot;
  Rng rng(6, 0);
  std::map<RowId, std::int64_t> truth;
  std::vector<RowId> ids;
  for (std::uint64_t k = 0; k < HotRows::kExact; ++k) {
    const RowId id = rng.below(1 + rng.below(40'000));
    ids.push_back(id);
    ++truth[id];
  }
  hot.count(ids);
  ASSERT_GT(hot.error(), 0);
  const auto rows = hot.hottest(ids.size());
  ASSERT_FALSE(rows.empty());
  for (const HotRows::Row& row : rows) {
    EXPECT_LE(row.pulls, truth[row.id]);
    EXPECT_GE(row.pulls, truth[row.id] - hot.error());
  }
  for (const auto& [id, pulls] : truth) {
    if (pulls <= 2 * hot.error()) continue;
    EXPECT_EQ(std::ranges::count(rows, id, &HotRows::Row::id), 1) << id << ", pulled " << pulls << " times";
  }
}

}  // namespace
}  // namespace paceline::pserver::sparse
