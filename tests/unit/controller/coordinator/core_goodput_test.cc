#include "controller/coordinator/core_goodput.h"

#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

using std::chrono::seconds;

TEST(Goodput, IsTheShareOfTheTimeInSteps) {
  Goodput goodput{{}};
  EXPECT_EQ(goodput.share({}), 0);
  EXPECT_EQ(goodput.share(seconds(5)), 0);
  goodput.taken(40, 40, seconds(4));
  goodput.taken(80, 40, seconds(4));
  EXPECT_DOUBLE_EQ(goodput.share(seconds(10)), 0.8);
  EXPECT_DOUBLE_EQ(goodput.share(seconds(1)), 1) << "a clock that lies";
}

TEST(Goodput, LostStepsDoNotCount) {
  Goodput goodput{{}};
  goodput.taken(80, 80, seconds(8));
  goodput.goes_on_from(0);
  EXPECT_EQ(goodput.share(seconds(10)), 0);
  goodput.taken(20, 20, seconds(2));
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 2.0 / 20);
  goodput.goes_on_from(20);
  goodput.goes_on_from(30);
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 2.0 / 20) << "no step lost";
  goodput.taken(15, 5, seconds(1));  // it was at step 10 again, and nobody has said so
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 11.0 * 15 / 105 / 20);
}

TEST(Goodput, GoesOnFromEarlierCoordinators) {
  const Goodput::Before before{.step = 100, .share = 0.5, .seconds = 20};
  Goodput goodput{before};
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 0.25) << "no step taken yet";
  EXPECT_DOUBLE_EQ(goodput.seconds(seconds(20)), 40);
  goodput.taken(110, 10, seconds(10));
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 20.0 / 40);
  goodput.goes_on_from(50);  // half of what was before, and all that was here
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 5.0 / 40);

  Goodput behind{before};
  behind.taken(60, 20, seconds(10));  // the checkpoint was of step 40
  EXPECT_DOUBLE_EQ(behind.share(seconds(20)), 14.0 / 40);
}

}  // namespace
}  // namespace paceline::coordinator
