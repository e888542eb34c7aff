#include "runtime/nccl/origin.h"

#include <gtest/gtest.h>

namespace paceline::nccl {
namespace {

// What ranks say that they hold: each other row is AgreementTest.RanksShrinkWhatAllHold.
TEST(OriginOf, AnotherWorldIsAnotherView) {
  std::vector<std::optional<Parent>> parents = {Parent{{7}, 0, 4}, Parent{{7}, 1, 4}};
  EXPECT_TRUE(origin_of(parents).shrinks);
  EXPECT_EQ(origin_of(parents).excluded, (std::vector<int>{2, 3}));
  parents[1]->world = 3;
  EXPECT_FALSE(origin_of(parents).shrinks);
}

}  // namespace
}  // namespace paceline::nccl
