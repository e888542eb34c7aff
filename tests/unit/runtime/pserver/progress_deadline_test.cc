#include "runtime/pserver/progress_deadline.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace paceline::pserver {
namespace {

using std::chrono::seconds;

TEST(ProgressDeadline, LastsAsLongAsSomethingMoves) {
  FakeClock clock;
  ProgressDeadline progress(clock, Deadline::after(clock.now(), seconds(10)));
  for (std::uint64_t count = 1; count < 100; ++count) {
    clock.advance(seconds(9));
    ASSERT_FALSE(progress.expired());
    EXPECT_EQ(progress.idle(), seconds(9));
    progress.count(count);
    ASSERT_EQ(progress.left(), seconds(10));
  }
  clock.advance(seconds(9));
  progress.count(99);  // nothing more
  EXPECT_EQ(progress.left(), seconds(1));
  clock.advance(seconds(1));
  EXPECT_TRUE(progress.expired());
  EXPECT_EQ(progress.left(), Duration::zero());
  EXPECT_EQ(progress.idle(), seconds(10));
  progress.moved();
  EXPECT_FALSE(progress.expired());
}

TEST(ProgressDeadline, MayHaveBegunBefore) {
  FakeClock clock;
  const TimePoint from = clock.now();
  clock.advance(seconds(8));
  ProgressDeadline progress(clock, from, seconds(10), 5);
  progress.count(5);
  EXPECT_EQ(progress.left(), seconds(2)) << "nothing has moved since";
  progress.count(6);
  EXPECT_EQ(progress.left(), seconds(10));
}

}  // namespace
}  // namespace paceline::pserver
