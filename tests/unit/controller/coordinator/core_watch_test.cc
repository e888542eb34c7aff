#include "controller/coordinator/core_watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::coordinator {
namespace {

using namespace std::chrono_literals;
using Seen = api::ObservationKind;

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() {
    config_.roles = {{Role::kWorker, 3}};
    config_.training.mutable_exchange()->set_timeout_ms(15'000);
    places_.emplace(config_);
    for (Slot& slot : places_->members()) {
      slot.hello.emplace();
      slot.stream = {static_cast<std::uint64_t>(places_->number(slot)) + 1};
      slot.rank = places_->number(slot);
      slot.phase = Phase::kTraining;
      slot.last_heard = kNow;
      for (int i = 0; i < 20; ++i) {
        slot.gaps.add(200ms);
        slot.pace.add(50ms);
      }
    }
  }
  Slot& slot(int number) { return places_->members()[static_cast<std::size_t>(number)]; }
  static std::vector<int> slots_of(const std::vector<Sighting>& sightings, Seen kind) {
    std::vector<int> slots;
    for (const Sighting& each : sightings) {
      EXPECT_EQ(each.seen.kind, kind);
      slots.push_back(each.slot);
    }
    return slots;
  }

  static constexpr TimePoint kNow = TimePoint(1000s);
  CoreConfig config_;
  std::optional<Places> places_;
  Watch watch_{config_, *places_};
};

TEST_F(WatchTest, SilentMemberIsSeenBehindItsPatience) {
  slot(1).last_heard = kNow - 2s;
  EXPECT_EQ(slots_of(watch_.silent(kNow, false), Seen::kSilent), std::vector<int>{1});
  EXPECT_TRUE(watch_.silent(kNow, true).empty()) << "while a view is formed all have longer";
  EXPECT_EQ(watch_.silent(kNow, false)[0].since, kNow - 2s);
}

TEST_F(WatchTest, LateMemberOfADrainIsTheOneThatTheOthersWaitFor) {
  watch_.drain_begins(kNow);
  slot(0).drained = true;
  slot(1).part = Part::kExchange;
  slot(2).part = Part::kCompute;
  EXPECT_TRUE(watch_.late(kNow + 5s, {1}).empty());
  EXPECT_EQ(slots_of(watch_.late(kNow + 6s, {1}), Seen::kKeepsView), std::vector<int>{2});
  watch_.pause(3s);
  EXPECT_TRUE(watch_.late(kNow + 6s, {1}).empty()) << "the coordinator's own absence counts against nobody";
  watch_.busy(kNow + 5s);
  EXPECT_TRUE(watch_.late(kNow + 9s, {1}).empty()) << "an evaluation is waited for";
}

TEST_F(WatchTest, MemberThatHangsIsSeenWhileTheOthersWaitForIt) {
  for (const int number : {0, 1, 2}) {
    slot(number).part = number == 2 ? Part::kInput : Part::kExchange;
    slot(number).in_part = 12s;
  }
  const auto sightings = watch_.hung(kNow);
  EXPECT_EQ(slots_of(sightings, Seen::kTakesNoStep), std::vector<int>{2});
  EXPECT_EQ(sightings[0].since, kNow - 12s);
}

TEST_F(WatchTest, SaveThatHangsIsSeenOnce) {
  watch_.saved(1s);
  slot(0).saves_since = kNow - kLeastSaveHang - 1s;
  slot(1).part = Part::kExchange;
  EXPECT_EQ(slots_of(watch_.hung(kNow), Seen::kTakesNoStep), std::vector<int>{0});
  EXPECT_TRUE(watch_.hung(kNow).empty()) << "the storage may be the cause";
}

TEST_F(WatchTest, MissingMembersAreSeenTogether) {
  slot(0).stream = {};
  slot(2).stream = {};
  EXPECT_TRUE(watch_.missing(kNow, kNow - config_.form_timeout + 1s).empty());
  EXPECT_EQ(slots_of(watch_.missing(kNow, kNow - config_.form_timeout), Seen::kNotJoined),
            (std::vector<int>{0, 2}));
  config_.elastic = true;
  EXPECT_TRUE(watch_.missing(kNow, kNow - config_.form_timeout).empty()) << "one will do";
}

}  // namespace
}  // namespace paceline::coordinator
