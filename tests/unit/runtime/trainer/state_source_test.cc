#include "runtime/trainer/state_source.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::trainer {
namespace {

TEST(StateSource, NoStateInTheFirstView) {
  EXPECT_FALSE(find_source(std::vector<Held>(3)).has_value());
}

TEST(StateSource, LowestRankOfTheHighestStep) {
  const auto source = find_source(std::vector<Held>{{}, {6, 4, 0}, {7, 4, 0}, {7, 4, 0}});
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->rank, 2);
  EXPECT_EQ(source->step, 7);
  EXPECT_EQ(source->saved_step, 4);
  EXPECT_FALSE(source->evaluates);
}

TEST(StateSource, StateBeforeTheFirstStepIsAState) {
  const auto source = find_source(std::vector<Held>{{}, {0, 0, 0}});
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->rank, 1);
  EXPECT_EQ(source->step, 0);
}

TEST(StateSource, AnEvaluationThatOneMemberHasNotFinishedIsTakenAgain) {
  EXPECT_TRUE(find_source(std::vector<Held>{{8, 0, 0}, {8, 0, 1}})->evaluates);
  EXPECT_FALSE(find_source(std::vector<Held>{{8, 0, 0}, {7, 0, 1}})->evaluates)
      << "that one has not applied the step";
}

TEST(StateSource, CheckpointsOfAMemberWithoutAStateDoNotCount) {
  EXPECT_EQ(find_source(std::vector<Held>{{-1, 9, 1}, {3, 2, 0}})->saved_step, 2);
}

}  // namespace
}  // namespace paceline::trainer
