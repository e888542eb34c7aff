#include "controller/diagnosis/view_text.h"

#include <gtest/gtest.h>

namespace paceline::diagnosis {
namespace {

TEST(ViewTextTest, AChangeSaysWhoAndHowLong) {
  const api::ViewChange change{.generation = Generation{3},
                               .came = {"worker-2", "worker-3"},
                               .left = {"worker-1"},
                               .noticed_seconds = 0.001,
                               .view_seconds = 0.004,
                               .state_seconds = 0.006,
                               .step_seconds = 0.003,
                               .step = 121};
  EXPECT_EQ(text_of(change),
            "view 3 trains: worker-1 left, worker-2 and worker-3 came; noticed after 1.0 ms, first step "
            "after 13 ms "
            "(4.0 ms to the view, 6.0 ms to one state, 3.0 ms for the step), no step lost");
}

TEST(ViewTextTest, AChangeMayHaveTheSameMembers) {
  EXPECT_EQ(members_of({}), "the same members");
  EXPECT_EQ(members_of({.came = {"worker-0"}}), "worker-0 came");
  EXPECT_EQ(members_of({.left = {"worker-0", "worker-1", "2 more"}}), "worker-0, worker-1 and 2 more left");
}

TEST(ViewTextTest, StepsThatWereTakenAgainAreCounted) {
  EXPECT_TRUE(times_of({.step = 5, .steps_lost = 1}).ends_with(", 1 step lost: it goes on from step 4"));
  EXPECT_TRUE(times_of({.step = 1, .steps_lost = 7}).ends_with(", 7 steps lost: it goes on from step 0"));
}

TEST(ViewTextTest, ARestartSaysWhereItGoesOn) {
  api::ViewChange change{.state_seconds = 0.2, .step_seconds = 0.1, .step = 5122, .restarted = true};
  EXPECT_EQ(members_of(change), "all members started again");
  EXPECT_EQ(times_of(change),
            "first step after 300 ms (200 ms to one state, 100 ms for the step), no step lost: it goes on "
            "from step 5121");
  change.steps_lost = 7;
  EXPECT_TRUE(times_of(change).ends_with(", 7 steps lost: it goes on from step 5121"));
}

}  // namespace
}  // namespace paceline::diagnosis
