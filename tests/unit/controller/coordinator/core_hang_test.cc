#include "controller/coordinator/core_hang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace paceline::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum Part;

constexpr Duration kStep = milliseconds(50);

Pace pace_of(int steps, Duration own = kStep) {
  Pace pace;
  for (int i = 0; i < steps; ++i) pace.add(own);
  return pace;
}

AtWork behind(int slot, Part part, Duration in_part, Pace pace = pace_of(20)) {
  pace.new_view();
  return {.slot = slot, .step = 12, .part = part, .in_part = in_part, .behind = true, .pace = pace};
}

AtWork at(int slot, Part part, Duration in_part, Step step = 12, Pace pace = pace_of(20)) {
  return {.slot = slot, .step = step, .part = part, .in_part = in_part, .pace = pace};
}

TEST(HangTest, AMemberThatHoldsOthersUpForLongIsFound) {
  const Duration soon = seconds(9), late = seconds(11);
  const struct {
    std::string name;
    std::vector<AtWork> members;
    std::vector<int> hung, waiting;
  } cases[] = {
      {"in compute", {at(0, kExchange, late), at(1, kCompute, late), at(2, kExchange, late)}, {1}, {0, 2}},
      {"in input", {at(0, kExchange, late), at(1, kInput, late)}, {1}, {0}},
      {"in update", {at(0, kUpdate, late), at(1, kExchange, late)}, {0}, {1}},
      {"two at once",
       {at(0, kExchange, late), at(1, kInput, late), at(2, kExchange, late), at(3, kCompute, late)},
       {1, 3},
       {0, 2}},
      {"a second one a moment later",
       {at(0, kExchange, late), at(1, kCompute, late), at(2, kInput, seconds(6)),
        at(3, kExchange, seconds(7))},
       {},
       {}},
      {"a second one a moment later, two wait",
       {at(0, kExchange, late), at(1, kCompute, late), at(2, kInput, seconds(6)), at(3, kExchange, late)},
       {1, 2},
       {0, 3}},
      {"a second one that has just begun",
       {at(0, kExchange, late), at(1, kCompute, late), at(2, kInput, seconds(4)), at(3, kExchange, late)},
       {1},
       {0, 3}},
      {"it does not come into the view", {at(0, kNone, {}), behind(1, kCompute, late)}, {1}, {0}},
      {"it takes its very first steps, and may come yet",
       {at(0, kNone, {}), behind(1, kCompute, late, pace_of(kFewSteps - 1))},
       {},
       {}},
      {"it may come yet", {at(0, kNone, {}), behind(1, kCompute, soon)}, {}, {}},
      {"it waits in an earlier view", {at(0, kNone, {}), behind(1, kExchange, late)}, {}, {}},
      {"more hang than wait", {at(0, kExchange, late), at(1, kInput, late), at(2, kInput, late)}, {}, {}},
      {"all compute", {at(0, kCompute, late), at(1, kCompute, late)}, {}, {}},
      {"all wait", {at(0, kExchange, late), at(1, kExchange, late)}, {}, {}},
      {"alone, and not for long yet", {at(0, kCompute, 3 * kLeastHang)}, {}, {}},
      {"alone", {at(0, kCompute, 3 * kLeastHang + kStep)}, {0}, {}},
      {"alone in its first steps", {at(0, kCompute, seconds(99), 12, pace_of(kFewSteps - 1))}, {}, {}},
      {"alone in an earlier view's step", {behind(0, kCompute, 3 * kLeastHang + kStep)}, {0}, {}},
      {"alone, and it comes into the view", {behind(0, kCompute, 3 * kLeastHang)}, {}, {}},
      {"nobody", {}, {}, {}},
      {"in no part: it saves, evaluates, or was not heard",
       {at(0, kNone, late), at(1, kExchange, late)},
       {},
       {}},
      {"not for long yet", {at(0, kExchange, soon), at(1, kCompute, soon)}, {}, {}},
      {"waited for since a moment ago", {at(0, kExchange, soon), at(1, kCompute, late)}, {}, {}},
      {"in its part since a moment ago", {at(0, kExchange, late), at(1, kCompute, soon)}, {}, {}},
      {"told of an earlier step", {at(0, kExchange, late, 13), at(1, kCompute, late, 12)}, {}, {}},
      {"waited for in an earlier step", {at(0, kExchange, late, 12), at(1, kCompute, late, 13)}, {}, {}},
      {"one lags behind in what it told",
       {at(0, kExchange, late, 12), at(1, kCompute, late, 13), at(2, kExchange, late, 13)},
       {1},
       {2}},
      {"it takes its first steps",
       {at(0, kExchange, late), at(1, kCompute, late, 12, pace_of(kFewSteps - 1))},
       {},
       {}},
      {"it has taken its first steps",
       {at(0, kExchange, late), at(1, kCompute, late, 12, pace_of(kFewSteps))},
       {1},
       {0}},
  };
  for (const auto& c : cases) {
    const Hung found = find_hung(c.members, kLeastHang);
    EXPECT_EQ(found.hung, c.hung) << c.name;
    EXPECT_EQ(found.waiting, c.waiting) << c.name;
  }
}

TEST(HangTest, TheBoundFollowsTheLongestStepOfAnyMember) {
  const auto bound = [](Pace one, Pace other) {
    const AtWork members[] = {at(0, kNone, {}, 12, one), at(1, kNone, {}, 12, other)};
    return hang_bound(members, kLeastHang);
  };
  EXPECT_EQ(bound({}, {}), kLeastHang);
  EXPECT_EQ(bound(pace_of(20, seconds(2)), pace_of(20)), kLeastHang);
  EXPECT_EQ(bound(pace_of(20), pace_of(1, seconds(30))), seconds(150));
}

TEST(HangTest, WhoeverLetsMembersWaitForLongerMeansIt) {
  EXPECT_EQ(least_hang(seconds(0)), kLeastHang);
  EXPECT_EQ(least_hang(seconds(15)), seconds(10));
  EXPECT_EQ(least_hang(seconds(30)), seconds(20));
  EXPECT_EQ(least_hang(seconds(600)), seconds(400));
  const AtWork members[] = {at(0, kExchange, seconds(21)), at(1, kInput, seconds(21))};
  EXPECT_THAT(find_hung(members, least_hang(seconds(30))).hung, ElementsAre(1));
  EXPECT_THAT(find_hung(members, least_hang(seconds(33))).hung, IsEmpty());
}

TEST(HangTest, ASlowReadOnceInAHundredStepsRaisesTheBound) {
  Pace pace;
  for (int step = 1; step <= 1000; ++step) {
    pace.add(step % 100 == 0 ? Duration(seconds(8)) : kStep);
    const AtWork members[] = {at(0, kExchange, seconds(39), step, pace),
                              at(1, kInput, seconds(39), step, pace)};
    if (step >= 100) {
      EXPECT_THAT(find_hung(members, kLeastHang).hung, IsEmpty()) << step;
    }
  }
  const AtWork members[] = {at(0, kExchange, seconds(41), 9, pace), at(1, kInput, seconds(41), 9, pace)};
  EXPECT_THAT(find_hung(members, kLeastHang).hung, ElementsAre(1));
}

TEST(SavesTest, ACheckpointHangsOnceOneHasEndedWell) {
  Saves saves;
  EXPECT_EQ(saves.bound(), std::nullopt);
  saves.add(seconds(1));
  EXPECT_EQ(saves.bound(), kLeastSaveHang);
  saves.add(seconds(60));
  saves.add(seconds(1));
  EXPECT_EQ(saves.bound(), seconds(300));
  saves.one_hangs();
  EXPECT_EQ(saves.bound(), std::nullopt);
}

TEST(HangTest, ALongStepIsForgottenInTheEnd) {
  Pace pace = pace_of(1, seconds(8));
  for (int i = 1; i < kPaceSteps; ++i) pace.add(kStep);
  EXPECT_EQ(pace.longest(), seconds(8));
  for (int i = 0; i < kPaceSteps; ++i) pace.add(kStep);
  EXPECT_EQ(pace.longest(), kStep);
}

TEST(HangTest, ANewViewKeepsWhatWasLearntButNotTheCount) {
  Pace pace = pace_of(20, seconds(8));
  pace.new_view();
  EXPECT_TRUE(pace.is_known());
  EXPECT_FALSE(pace.is_known_in_view());
  EXPECT_EQ(pace.longest(), seconds(8));
}

}  // namespace
}  // namespace paceline::coordinator
