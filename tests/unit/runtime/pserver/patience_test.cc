#include "runtime/pserver/patience.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace paceline::pserver {
namespace {

using std::chrono::seconds;

TEST(Patience, LastsAsLongAsSomethingMoves) {
  paceline::testing::FakeClock clock;
  Patience patience(clock, Deadline::after(clock.now(), seconds(10)));
  for (std::uint64_t count = 1; count < 100; ++count) {
    clock.advance(seconds(9));
    ASSERT_FALSE(patience.expired());
    EXPECT_EQ(patience.idle(), seconds(9));
    patience.count(count);
    ASSERT_EQ(patience.left(), seconds(10));
  }
  clock.advance(seconds(9));
  patience.count(99);  // nothing more
  EXPECT_EQ(patience.left(), seconds(1));
  clock.advance(seconds(1));
  EXPECT_TRUE(patience.expired());
  EXPECT_EQ(patience.left(), Duration::zero());
  EXPECT_EQ(patience.idle(), seconds(10));
  patience.moved();
  EXPECT_FALSE(patience.expired());
}

TEST(Patience, MayHaveBegunBefore) {
  paceline::testing::FakeClock clock;
  const TimePoint from = clock.now();
  clock.advance(seconds(8));
  Patience patience(clock, from, seconds(10), 5);
  patience.count(5);
  EXPECT_EQ(patience.left(), seconds(2)) << "nothing has moved since";
  patience.count(6);
  EXPECT_EQ(patience.left(), seconds(10));
}

}  // namespace
}  // namespace paceline::pserver
