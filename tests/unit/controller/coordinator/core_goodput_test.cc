#include "controller/coordinator/core_goodput.h"

#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

using std::chrono::seconds;

TEST(Goodput, IsTheShareOfTheTimeInSteps) {
  Goodput goodput{{}};
  EXPECT_EQ(goodput.share({}), 0);
  EXPECT_EQ(goodput.share(seconds(5)), 0);
  goodput.taken(40, 40, seconds(4), seconds(5));
  goodput.taken(80, 40, seconds(4), seconds(10));
  EXPECT_DOUBLE_EQ(goodput.share(seconds(10)), 0.8);
  EXPECT_DOUBLE_EQ(goodput.share(seconds(1)), 1) << "a clock that lies";
}

TEST(Goodput, LostStepsDoNotCount) {
  Goodput goodput{{}};
  goodput.taken(80, 80, seconds(8), seconds(10));
  goodput.goes_on_from(0);
  EXPECT_EQ(goodput.share(seconds(10)), 0);
  goodput.taken(20, 20, seconds(2), seconds(20));
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 2.0 / 20);
  goodput.goes_on_from(20);
  goodput.goes_on_from(30);
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 2.0 / 20) << "no step lost";
  goodput.taken(15, 5, seconds(1), seconds(20));  // it was at step 10 again, and nobody has said so
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 11.0 * 15 / 105 / 20);
}

TEST(Goodput, GoesOnFromEarlierCoordinators) {
  const Goodput::Before before{.step = 100, .share = 0.5, .seconds = 20};
  Goodput goodput{before};
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 0.25) << "no step taken yet";
  EXPECT_DOUBLE_EQ(goodput.seconds(seconds(20)), 40);
  goodput.taken(110, 10, seconds(10), seconds(20));
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 20.0 / 40);
  goodput.goes_on_from(50);  // half of what was before, and all that was here
  EXPECT_DOUBLE_EQ(goodput.share(seconds(20)), 5.0 / 40);

  Goodput behind{before};
  behind.taken(60, 20, seconds(10), seconds(20));  // the checkpoint was of step 40
  EXPECT_DOUBLE_EQ(behind.share(seconds(20)), 14.0 / 40);
}

// Ten steps a second, half of the time, for ten minutes; the next coordinator comes 300 s later.
constexpr Goodput::Before kTenMinutes{.step = 3000, .share = 0.5, .seconds = 600};

TEST(Goodput, TimeWithoutACoordinatorCountsForNobody) {
  Goodput goodput{kTenMinutes};
  goodput.taken(6000, 3000, seconds(300), seconds(1));
  EXPECT_DOUBLE_EQ(goodput.share(seconds(1)), 301.0 / 601);
  goodput.taken(7000, 1000, seconds(100), seconds(201));
  EXPECT_DOUBLE_EQ(goodput.share(seconds(201)), 401.0 / 801);
  goodput.goes_on_from(6495);  // of the 1010 steps here 505 are left
  EXPECT_DOUBLE_EQ(goodput.share(seconds(201)), 350.5 / 801);
  goodput.goes_on_from(4000);  // all of those here, and of those without a coordinator some
  EXPECT_DOUBLE_EQ(goodput.share(seconds(201)), 300.0 / 801);
  goodput.goes_on_from(1500);
  EXPECT_DOUBLE_EQ(goodput.share(seconds(201)), 150.0 / 801);
}

// Its steps are from before the outage, and its step is of now.
TEST(Goodput, HeartbeatThatIsSentAgainDoesNotMoveTheBeginning) {
  Goodput goodput{kTenMinutes};
  goodput.taken(6000, 2, std::chrono::milliseconds(200), seconds(1));
  goodput.taken(6010, 3008, seconds(301), seconds(2));
  goodput.taken(7000, 990, seconds(99), seconds(200));
  EXPECT_NEAR(goodput.share(seconds(200)), 401.0 / 800, 1e-4);
  goodput.goes_on_from(6500);  // half of the steps here
  EXPECT_NEAR(goodput.share(seconds(200)), 350.5 / 800, 1e-3);
  goodput.goes_on_from(5000);
  EXPECT_DOUBLE_EQ(goodput.share(seconds(200)), 300.0 / 800) << "of those before none is lost";

  Goodput shortly{{.step = 100, .share = 0.5, .seconds = 20}};  // members that went on from step 40
  shortly.taken(60, 5, seconds(5), seconds(30));
  shortly.taken(61, 16, seconds(16), seconds(31));
  EXPECT_DOUBLE_EQ(shortly.share(seconds(31)), (4.0 + 21) / 51);
}

}  // namespace
}  // namespace paceline::coordinator
