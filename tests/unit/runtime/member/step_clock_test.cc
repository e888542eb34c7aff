#include "runtime/member/step_clock.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/fake_clock.h"

namespace paceline::member {
namespace {

TEST(StepClockTest, EveryNanosecondBelongsSomewhere) {
  FakeClock clock;
  StepClock steps(clock);
  steps.begin();
  clock.advance(Duration(1));
  {
    const auto input = steps.part(StepPart::kInput);
    clock.advance(Duration(10));
  }
  {
    const auto compute = steps.part(StepPart::kCompute);
    clock.advance(Duration(100));
    {
      const auto wait = steps.part(StepPart::kWait);
      clock.advance(Duration(1000));
      steps.move(StepPart::kWait, StepPart::kTransfer, Duration(300));
      clock.advance(Duration(5));
    }
    clock.advance(Duration(20));
  }
  const StepTimes times = steps.end();
  EXPECT_EQ(times.input, 10);
  EXPECT_EQ(times.compute, 121) << "what no scope holds is the loop's own work";
  EXPECT_EQ(times.wait, 705);
  EXPECT_EQ(times.transfer, 300);
  EXPECT_EQ(times.update, 0);
  EXPECT_EQ(times.step, 1136);
  EXPECT_EQ(times.step, times.parts());
}

TEST(StepClockTest, OthersSeeTheCurrentPartAndItsBegin) {
  FakeClock clock;
  CurrentPart current;
  EXPECT_EQ(current.seen().part, StepPart::kNone);
  StepClock steps(clock, &current);
  clock.advance(Duration(7));
  steps.begin();
  EXPECT_EQ(current.seen(), (CurrentPart::Seen{StepPart::kCompute, clock.now()}));
  {
    const auto wait = steps.part(StepPart::kWait);
    const CurrentPart::Seen seen{StepPart::kWait, clock.now()};
    EXPECT_EQ(current.seen(), seen);
    clock.advance(Duration(1000));
    steps.move(StepPart::kWait, StepPart::kTransfer, Duration(300));
    EXPECT_EQ(current.seen(), seen) << "a part goes on when time of it is counted elsewhere";
  }
  EXPECT_EQ(current.seen(), (CurrentPart::Seen{StepPart::kCompute, clock.now()}));
  steps.end();
  EXPECT_EQ(current.seen(), (CurrentPart::Seen{StepPart::kNone, clock.now()}));
}

TEST(StepClockTest, MoveTakesNoMoreThanThereIs) {
  FakeClock clock;
  StepClock steps(clock);
  steps.begin();
  {
    const auto wait = steps.part(StepPart::kWait);
    clock.advance(Duration(50));
  }
  steps.move(StepPart::kWait, StepPart::kTransfer, Duration(80));
  steps.move(StepPart::kTransfer, StepPart::kWait, Duration(-5));
  const StepTimes times = steps.end();
  EXPECT_EQ(times.wait, 0);
  EXPECT_EQ(times.transfer, 50);
  EXPECT_EQ(times.step, 50);
}

TEST(StepClockTest, MoveBeyondLeavesWhatIsItsOwn) {
  FakeClock clock;
  const auto moved = [&](std::int64_t own, std::int64_t most) {
    StepClock steps(clock);
    steps.begin();
    const auto compute = steps.part(StepPart::kCompute);
    clock.advance(Duration(50));
    steps.move_beyond(StepPart::kCompute, Duration(own), StepPart::kUpdate, Duration(most));
    const StepTimes times = steps.end();
    EXPECT_EQ(times.compute + times.update, 50);
    return times.update;
  };
  EXPECT_EQ(moved(40, 30), 10);
  EXPECT_EQ(moved(40, 3), 3);
  EXPECT_EQ(moved(60, 3), 0) << "there is nothing beyond";
  EXPECT_EQ(moved(0, 0), 0);
}

TEST(StepClockTest, AStepBeginsAnew) {
  FakeClock clock;
  StepClock steps(clock);
  steps.begin();
  auto left_open = std::make_unique<StepClock::Scope>(steps.part(StepPart::kInput));
  clock.advance(Duration(7));
  left_open.reset();
  steps.begin();
  clock.advance(Duration(3));
  const StepTimes times = steps.end();
  EXPECT_EQ(times.input, 0);
  EXPECT_EQ(times.step, 3);
}

TEST(StepClockTest, RandomNestingAddsUp) {
  FakeClock clock;
  StepClock steps(clock);
  Rng rng(3, 1);
  std::int64_t expected = 0;
  const auto advance = [&] {
    const auto by = static_cast<std::int64_t>(rng.below(100));
    clock.advance(Duration(by));
    expected += by;
  };
  const auto nest = [&](auto& self, int depth) -> void {
    const auto scope = steps.part(static_cast<StepPart>(rng.below(6)));
    advance();
    for (int i = 0; depth > 0 && i < 3; ++i) self(self, depth - 1);
    advance();
  };
  for (int round = 0; round < 20; ++round) {
    expected = 0;
    steps.begin();
    nest(nest, 4);
    const StepTimes times = steps.end();
    EXPECT_EQ(times.step, expected);
    EXPECT_EQ(times.parts(), expected);
  }
}

}  // namespace
}  // namespace paceline::member
