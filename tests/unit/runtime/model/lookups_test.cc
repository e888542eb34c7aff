#include "runtime/model/lookups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/rng.h"

namespace paceline::model {
namespace {

using ::testing::ElementsAre;

void look_up(Lookups& lookups, const std::vector<std::uint64_t>& ids) {
  lookups.clear();
  for (const auto id : ids) lookups.add(id);
  lookups.finish();
}

TEST(Lookups, EachRowOnceAndRising) {
  Lookups lookups(8);
  look_up(lookups, {7, 3, 7, 0, ~0ULL, 3});
  EXPECT_THAT(lookups.ids(), ElementsAre(0U, 3U, 7U, ~0ULL));
  EXPECT_THAT(lookups.occurrences(), ElementsAre(2U, 1U, 2U, 0U, 3U, 1U));
  look_up(lookups, {});
  EXPECT_TRUE(lookups.ids().empty());
  EXPECT_TRUE(lookups.occurrences().empty());
}

// Many batches through one of them, full ones too, against a set.
TEST(Lookups, EveryOccurrenceFindsItsRow) {
  constexpr std::uint64_t kSeed = 20261121;
  constexpr std::int64_t kMost = 500;
  Lookups lookups(kMost);
  Rng rng(kSeed, 1);
  for (int batch = 0; batch < 200; ++batch) {
    std::vector<std::uint64_t> ids(batch % 7 == 0 ? kMost : rng.below(kMost));
    const std::uint64_t distinct = 1 + rng.below(1000);
    for (auto& id : ids) id = rng.below(distinct);
    look_up(lookups, ids);
    const std::set<std::uint64_t> expected(ids.begin(), ids.end());
    ASSERT_EQ(std::vector<std::uint64_t>(lookups.ids().begin(), lookups.ids().end()),
              std::vector<std::uint64_t>(expected.begin(), expected.end()))
        << "seed " << kSeed << " batch " << batch;
    ASSERT_EQ(lookups.occurrences().size(), ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(lookups.ids()[lookups.occurrences()[i]], ids[i]);
  }
}

TEST(Lookups, MoreThanThereIsRoomForIsABug) {
  Lookups lookups(2);
  lookups.add(1);
  lookups.add(1);
  EXPECT_DEATH(lookups.add(1), "room");
}

}  // namespace
}  // namespace paceline::model
