#include "runtime/agent/step_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Step> steps(const std::vector<StepLine>& lines) {
  std::vector<Step> numbers;
  for (const StepLine& line : lines) numbers.push_back(line.step);
  return numbers;
}

TEST(StepFeedTest, ADatagramIsOneLineOrSeveral) {
  StepFeed feed;
  EXPECT_THAT(steps(feed.take("step=1 compute_ms=1")), ElementsAre(1));
  EXPECT_THAT(steps(feed.take("step=2 compute_ms=1\nstep=3 compute_ms=1\n\nstep=5 compute_ms=1\n")),
              ElementsAre(2, 3, 5));
  EXPECT_THAT(feed.take(""), IsEmpty());
  EXPECT_EQ(feed.refused(), 0);
  EXPECT_THAT(feed.warnings(), IsEmpty());
}

TEST(StepFeedTest, ABadLineCostsNoOtherOneAndIsToldOfOnce) {
  StepFeed feed;
  EXPECT_THAT(steps(feed.take("step=1 compute_ms=1\nnonsense\nstep=2 compute_ms=1")), ElementsAre(1, 2));
  EXPECT_EQ(feed.warnings().size(), 1u);
  for (int i = 0; i < 8; ++i) EXPECT_THAT(feed.take("nonsense"), IsEmpty());
  EXPECT_THAT(feed.warnings(), IsEmpty());
  EXPECT_EQ(feed.refused(), 9);
  EXPECT_THAT(feed.take("nonsense"), IsEmpty());
  EXPECT_EQ(feed.warnings().size(), 1u) << "the tenth";
}

TEST(StepFeedTest, StepsThatDoNotRiseAreLeftOut) {
  StepFeed feed;
  EXPECT_THAT(
      steps(feed.take("step=5 compute_ms=1\nstep=5 compute_ms=1\nstep=4 compute_ms=1\nstep=6 compute_ms=1")),
      ElementsAre(5, 6));
  EXPECT_EQ(feed.refused(), 2);
  EXPECT_EQ(feed.warnings().size(), 1u);
}

TEST(StepFeedTest, AKeyThatIsNotKnownIsToldOfAndTheLineCounts) {
  StepFeed feed;
  EXPECT_THAT(steps(feed.take("step=1 compute_ms=1 loss=2")), ElementsAre(1));
  EXPECT_EQ(feed.refused(), 0);
  EXPECT_EQ(feed.warnings().size(), 1u);
}

TEST(StepFeedTest, BytesOfAnyKindDoNoHarm) {
  StepFeed feed;
  EXPECT_THAT(feed.take(std::string(3, '\0') + "\xff\x1b[2J=\n=\n=="), IsEmpty());
  EXPECT_EQ(feed.refused(), 3);
}

}  // namespace
}  // namespace paceline::agent
