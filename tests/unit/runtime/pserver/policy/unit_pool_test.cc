#include "runtime/pserver/policy/unit_pool.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "base/text.h"

namespace paceline::pserver {
namespace {

TEST(UnitPoolTest, ReturnedUnitsComeFirst) {
  UnitPool pool({.units_per_step = 2}, 4);
  EXPECT_EQ(pool.take(4), 0);
  EXPECT_EQ(pool.take(4), 1);
  EXPECT_EQ(pool.take(4), 2);
  pool.give_back(1);
  EXPECT_EQ(pool.take(4), 1);
  EXPECT_EQ(pool.take(3), -1) << "none below 3";
  EXPECT_EQ(pool.take(9), 3);
  EXPECT_EQ(pool.take(9), -1) << "none at all";
}

TEST(UnitPoolTest, ExactlyThisOne) {
  UnitPool pool({.units_per_step = 2}, 6);
  EXPECT_TRUE(pool.take_exactly(3));
  EXPECT_FALSE(pool.take_exactly(3));
  EXPECT_FALSE(pool.take_exactly(6));
  EXPECT_FALSE(pool.take_exactly(-1));
  EXPECT_TRUE(pool.take_exactly(1));
  EXPECT_EQ(pool.take(6), 0);
  EXPECT_EQ(pool.take(6), 2);
  EXPECT_EQ(pool.take(6), 4);
}

TEST(UnitPoolTest, BeginsWithWhatIsApplied) {
  UnitPool pool({.units_per_step = 2, .below = 5, .missing = {1, 3}}, 8);
  EXPECT_EQ(pool.applied_count(), 3);
  EXPECT_EQ(pool.lowest(), 1);
  EXPECT_FALSE(pool.take_exactly(2));
  EXPECT_EQ(pool.take(8), 1);
  EXPECT_EQ(pool.take(8), 3);
  EXPECT_EQ(pool.take(8), 5);
  pool.apply(1);
  EXPECT_EQ(pool.lowest(), 3);
  EXPECT_EQ(pool.applied(), (UnitsApplied{.units_per_step = 2, .below = 5, .missing = {3}}));
  pool.apply(5);
  EXPECT_EQ(pool.applied(), (UnitsApplied{.units_per_step = 2, .below = 6, .missing = {3}}));
}

TEST(UnitPoolTest, AgreesWithASetOfEverything) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(str_cat("seed ", seed));
    Rng rng(seed, 1);
    const auto limit = static_cast<Unit>(1 + rng.below(60));
    UnitPool pool({.units_per_step = 3}, limit);
    std::set<Unit> applied, out, free;
    for (Unit unit = 0; unit < limit; ++unit) free.insert(unit);
    for (int i = 0; i < 300; ++i) {
      const auto any = static_cast<Unit>(rng.below(static_cast<std::uint64_t>(limit)));
      if (const std::uint64_t what = rng.below(4); what == 0) {
        ASSERT_EQ(pool.take_exactly(any), free.contains(any));
        if (free.erase(any) == 1) out.insert(any);
      } else if (what == 1) {
        const Unit unit = pool.take(any);
        ASSERT_EQ(unit, free.empty() || *free.begin() >= any ? -1 : *free.begin());
        if (free.erase(unit) == 1) out.insert(unit);
      } else if (out.contains(any)) {
        if (what == 2) pool.apply(any), applied.insert(any);
        if (what == 3) pool.give_back(any), free.insert(any);
        out.erase(any);
      }
      ASSERT_EQ(pool.applied_count(), static_cast<std::int64_t>(applied.size()));
      const UnitsApplied all = pool.applied();
      ASSERT_EQ(all.below, applied.empty() ? 0 : *applied.rbegin() + 1);
      for (const Unit unit : all.missing) ASSERT_FALSE(applied.contains(unit));
      ASSERT_EQ(all.count(), static_cast<std::int64_t>(applied.size()));
    }
  }
}

TEST(UnitPoolDeathTest, AUnitIsAppliedOnce) {
  UnitPool pool({.units_per_step = 1}, 2);
  pool.take(2);
  pool.apply(0);
  EXPECT_DEATH(pool.apply(0), "applied once");
  EXPECT_DEATH(pool.give_back(1), "only a unit that is out");
}

}  // namespace
}  // namespace paceline::pserver
