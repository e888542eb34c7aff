#include "base/ids.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(IdsTest, RolesHaveTheFieldsNames) {
  EXPECT_STREQ(role_name(Role::kChief), "chief");
  EXPECT_STREQ(role_name(Role::kWorker), "worker");
  EXPECT_STREQ(role_name(Role::kServer), "ps");
  EXPECT_STREQ(role_name(Role::kEvaluator), "evaluator");
}

TEST(IdsTest, GenerationsAreOrdered) {
  EXPECT_LT(Generation{1}, Generation{2});
  EXPECT_EQ(Generation{}, Generation{0});
}

}  // namespace
}  // namespace paceline
