#include "runtime/pserver/sparse/hot_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const auto rows = hot.hottest(2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].id, 1u);
  EXPECT_EQ(rows[1].id, 2u);
  // Too large by at most total / counters, and by the sampling.
  EXPECT_GE(rows[0].pulls, pulls / 10 * 9 / 10);
  EXPECT_LE(rows[0].pulls, pulls / 10 * 11 / 10 + pulls / static_cast<std::int64_t>(HotRows::kCounters));
}

}  // namespace
}  // namespace paceline::pserver::sparse
