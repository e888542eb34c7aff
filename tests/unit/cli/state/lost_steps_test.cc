#include "cli/state/lost_steps.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(LostSteps, StepsBehindTheCheckpointAreCounted) {
  EXPECT_EQ(lost_steps_text(8518, 5000), "step 5000 was saved: 3518 steps are lost");
  EXPECT_EQ(lost_steps_text(8, 7), "step 7 was saved: 1 step is lost");
  EXPECT_EQ(lost_steps_text(8, 0), "nothing was saved: all its steps are lost");
  EXPECT_EQ(lost_steps_text(8, 8), "");
  EXPECT_EQ(lost_steps_text(8, 9), "");
  EXPECT_EQ(lost_steps_text(0, 0), "");
}

}  // namespace
}  // namespace paceline::cli
