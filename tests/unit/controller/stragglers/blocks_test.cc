#include "controller/stragglers/blocks.h"

#include <gtest/gtest.h>

namespace paceline::stragglers {
namespace {

using std::chrono::milliseconds;

StepSample sample(Step step, int compute_ms, int checkpoint_ms = 0) {
  return {.step = step, .compute = milliseconds(compute_ms), .checkpoint = milliseconds(checkpoint_ms)};
}

TEST(Blocks, FirstStepsOfAViewAreLeftOut) {
  Blocks blocks;
  blocks.begin_view(1);
  for (Step step = 11; step <= 11 + kWarmUp; ++step) {
    EXPECT_FALSE(blocks.take()) << step;
    blocks.add(0, sample(step, 300));
  }
  const auto block = blocks.take();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->begin, 11 + kWarmUp);
  EXPECT_EQ(block->end, 12 + kWarmUp);
}

TEST(Blocks, BlockWaitsForAllMembers) {
  Blocks blocks;
  blocks.begin_view(2);
  for (Step step = 1; step <= 10; ++step) blocks.add(0, sample(step, 300));
  EXPECT_FALSE(blocks.take());
  for (Step step = 1; step <= 7; ++step) blocks.add(1, sample(step, 600));
  for (Step step = 6; step <= 7; ++step) {
    const auto block = blocks.take();
    ASSERT_TRUE(block) << step;
    EXPECT_EQ(block->begin, step);
    EXPECT_DOUBLE_EQ(block->rows[0].compute, 0.3);
    EXPECT_DOUBLE_EQ(block->rows[1].compute, 0.6);
  }
  EXPECT_FALSE(blocks.take());
}

TEST(Blocks, ShortStepsShareABlock) {
  Blocks blocks;
  blocks.begin_view(1);
  for (Step step = 1; step <= 100; ++step) blocks.add(0, sample(step, 10));
  EXPECT_EQ(blocks.take()->end - 1, 1 + kWarmUp);  // the steps' time is not known before
  const auto block = blocks.take();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->end - block->begin, kBlock / milliseconds(10));
  EXPECT_EQ(block->rows[0].steps, kBlock / milliseconds(10));
}

TEST(Blocks, BlockEndsWhereItsStepsBecomeLonger) {
  Blocks blocks;
  blocks.begin_view(2);
  Step step = 1;
  for (; step <= 5000; ++step) {
    for (const int rank : {0, 1}) blocks.add(rank, {.step = step, .compute = std::chrono::microseconds(100)});
  }
  while (blocks.take()) {
  }
  for (const Step end = step + 3; step < end; ++step) {
    for (const int rank : {0, 1}) blocks.add(rank, sample(step, 90));
  }
  const auto block = blocks.take();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->end, step);
}

TEST(Blocks, ThinnedStepsCountAsMeans) {
  Blocks blocks;
  blocks.begin_view(2);
  for (Step step = 1; step <= 200; ++step) blocks.add(0, sample(step, 10));
  for (Step step = 1; step <= 200; step += 3) blocks.add(1, sample(step, 20));
  blocks.take();
  const auto block = blocks.take();
  ASSERT_TRUE(block);
  EXPECT_LT(block->rows[1].steps, block->rows[0].steps);
  EXPECT_DOUBLE_EQ(block->rows[1].compute, 0.02);
}

TEST(Blocks, StepWithACheckpointIsLeftOut) {
  Blocks blocks;
  blocks.begin_view(1);
  for (Step step = 1; step <= 6; ++step) blocks.add(0, sample(step, 300, step == 6 ? 1000 : 0));
  const auto block = blocks.take();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->rows[0].steps, 0);
  EXPECT_EQ(block->rows[0].own(), 0);
}

TEST(Blocks, StepThatDoesNotRiseIsIgnored) {
  Blocks blocks;
  blocks.begin_view(1);
  for (Step step = 1; step <= 6; ++step) blocks.add(0, sample(step, 300));
  blocks.add(0, sample(6, 900));
  EXPECT_DOUBLE_EQ(blocks.take()->rows[0].compute, 0.3);
}

TEST(Blocks, MemberThatTellsNothingDoesNotFillTheMemory) {
  Blocks blocks;
  blocks.begin_view(2);
  Step step = 1;
  for (; step <= static_cast<Step>(kMostPending) + 100; ++step) blocks.add(0, sample(step, 300));
  EXPECT_FALSE(blocks.take());
  blocks.add(1, sample(step - 1, 300));
  const auto block = blocks.take();
  ASSERT_TRUE(block);  // of those behind the ones that were given up
  EXPECT_GT(block->begin, static_cast<Step>(kMostPending));
}

// A program may count its steps as it likes.
TEST(Blocks, StepsThatNobodyTellsOfAreNoBlocks) {
  constexpr Step kFar = 1'000'000'000'000;
  Blocks blocks;
  blocks.begin_view(1);
  for (Step step = 1; step <= 100; ++step) blocks.add(0, sample(step * kFar, 20));
  int taken = 0;
  while (const auto block = blocks.take()) {
    ASSERT_LT(++taken, 100);
    EXPECT_EQ(block->rows[0].steps, 1);
  }
  EXPECT_GT(taken, 90);
}

}  // namespace
}  // namespace paceline::stragglers
