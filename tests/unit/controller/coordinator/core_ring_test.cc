#include "controller/coordinator/core_ring.h"

#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

using Numbers = std::vector<int>;

TEST(ChooseRing, TakesAllWhereThereIsRoom) {
  EXPECT_EQ(choose_ring({{2}, {0, true}, {1}}, 3), (Numbers{0, 1, 2}));
  EXPECT_EQ(choose_ring({}, 3), Numbers());
}

TEST(ChooseRing, PrefersThoseInTheViewToThoseThatWait) {
  EXPECT_EQ(choose_ring({{1}, {2, false, true}, {3, false, true}}, 2), (Numbers{2, 3}));
  EXPECT_EQ(choose_ring({{1}, {2}, {3, false, true}}, 2), (Numbers{1, 3}));
}

TEST(ChooseRing, PrefersThoseThatHoldAState) {
  EXPECT_EQ(choose_ring({{1}, {2, false, false, true}, {3, false, true}}, 2), (Numbers{2, 3}));
  EXPECT_EQ(choose_ring({{0, true}, {1}, {2, false, false, true}}, 2), (Numbers{0, 2}));
}

TEST(ChooseRing, GivesTheChiefItsPlaceAgain) {
  EXPECT_EQ(choose_ring({{0, true}, {1, false, true}, {3, false, true}}, 2), (Numbers{0, 1}));
}

}  // namespace
}  // namespace paceline::coordinator
