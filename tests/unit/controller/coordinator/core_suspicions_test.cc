#include "controller/coordinator/core_suspicions.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::coordinator {
namespace {

using namespace std::chrono_literals;
using Seen = api::ObservationKind;

// Three workers in a view, heard at `kNow`, or with a server as the last of them.
class SuspicionsTest : public ::testing::Test {
 protected:
  SuspicionsTest() { begin({{Role::kWorker, 3}}); }
  void begin(std::vector<ExpectedRole> roles) {
    config_.roles = std::move(roles);
    places_.emplace(config_);
    for (Slot& slot : places_->members()) {
      slot.hello.emplace();
      slot.stream = {static_cast<std::uint64_t>(places_->number(slot)) + 1};
      slot.rank = places_->number(slot);
      slot.last_heard = kNow;
      slot.has_stepped = true;
      slot.step = 40;
    }
  }
  Slot& slot(int number) { return places_->members()[static_cast<std::size_t>(number)]; }
  void see(int number, Seen kind, TimePoint since) {
    slot(number).evidence = diagnosis::Evidence{number, {kind, ""}, since};
  }
  // All were heard until then.
  std::optional<api::Fault> look(TimePoint now) {
    for (Slot& slot : places_->members()) slot.last_heard = std::max(slot.last_heard, now);
    return suspicions_.ripe(now, false, [&](const api::Fault&) { return next_view_; });
  }

  static constexpr TimePoint kNow = TimePoint(1000s);
  CoreConfig config_;
  std::optional<Places> places_;
  std::optional<Watch> watch_{std::in_place, config_, *places_};
  Suspicions suspicions_{config_, *places_, *watch_};
  bool next_view_ = false;
};

TEST_F(SuspicionsTest, NothingSeenIsNoVerdict) {
  EXPECT_FALSE(look(kNow));
  EXPECT_FALSE(suspicions_.open());
}

TEST_F(SuspicionsTest, EarliestEvidenceOfTheGraceIsTheVerdict) {
  see(2, Seen::kStreamEnded, kNow);
  EXPECT_FALSE(look(kNow));
  EXPECT_EQ(suspicions_.since(), kNow);
  see(1, Seen::kStreamEnded, kNow - 1ms);
  EXPECT_FALSE(look(kNow + config_.grace - 1ms));
  const std::optional<api::Fault> verdict = look(kNow + config_.grace);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->index, 1);
  EXPECT_EQ(verdict->rank, 1);
  EXPECT_EQ(verdict->step, 40);
  ASSERT_EQ(verdict->victims.size(), 1u);
  EXPECT_EQ(verdict->victims[0].index, 2);
}

TEST_F(SuspicionsTest, VerdictThatLeadsToTheNextViewWaitsForNothing) {
  next_view_ = true;
  see(2, Seen::kStreamEnded, kNow);
  EXPECT_TRUE(look(kNow));
}

TEST_F(SuspicionsTest, OnlyHolderOfTheStateMayComeBackForLonger) {
  config_.rejoin_grace = 5s;
  see(2, Seen::kStreamEnded, kNow);
  slot(2).evidence->lapsed = true;
  slot(2).stream = {};
  EXPECT_FALSE(look(kNow));
  EXPECT_TRUE(look(kNow + 5s)) << "others hold it, too";
  slot(0).step = slot(1).step = 0;
  EXPECT_FALSE(look(kNow + 5s));
  EXPECT_TRUE(look(kNow + config_.start_timeout));
  slot(2).evidence->lapsed = false;  // the cluster has said that its process ended
  EXPECT_TRUE(look(kNow + 5s));
}

TEST_F(SuspicionsTest, MemberThatIsLongSilentIsNamedAtOnce) {
  see(0, Seen::kSilent, kNow - 5s);
  const std::optional<api::Fault> verdict = look(kNow);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, api::FaultKind::kFrozen);
}

TEST_F(SuspicionsTest, MemberThatTrainsIsHeardOnceAndAServerOncePerPeer) {
  EXPECT_TRUE(suspicions_.report(slot(0), slot(1), "reset"));
  EXPECT_FALSE(suspicions_.report(slot(0), slot(2), "reset"));
  EXPECT_TRUE(suspicions_.has_report_by(slot(0)));
  EXPECT_FALSE(suspicions_.has_report_by(slot(1)));
  begin({{Role::kWorker, 2}, {Role::kServer, 1}});
  suspicions_.clear();
  EXPECT_TRUE(suspicions_.report(slot(2), slot(0), "reset"));
  EXPECT_TRUE(suspicions_.report(slot(2), slot(1), "reset"));
  EXPECT_FALSE(suspicions_.report(slot(2), slot(1), "reset"));
}

TEST_F(SuspicionsTest, ReportsNameAMemberOnlyOnceAllAreHeard) {
  suspicions_.report(slot(0), slot(1), "reset");
  suspicions_.report(slot(2), slot(1), "reset");
  EXPECT_FALSE(look(kNow));
  const TimePoint ripe = kNow + config_.grace;
  EXPECT_FALSE(suspicions_.ripe(ripe + 1s, false, [](const api::Fault&) { return false; }))
      << "those that were not heard since may be frozen";
  const std::optional<api::Fault> verdict = look(ripe + 1s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->index, 1);
  EXPECT_EQ(verdict->kind, api::FaultKind::kUnreachable);
}

TEST_F(SuspicionsTest, ForgottenReportsAreNoSuspicion) {
  suspicions_.report(slot(0), slot(1), "reset");
  look(kNow);
  suspicions_.forget(slot(1));
  EXPECT_FALSE(look(kNow + 10s));
  EXPECT_FALSE(suspicions_.open());
}

TEST_F(SuspicionsTest, LapsedStreamMayComeBackUnlessAPeerHasLostItToo) {
  config_.rejoin_grace = 5s;
  see(1, Seen::kStreamEnded, kNow);
  slot(1).evidence->lapsed = true;
  look(kNow);
  EXPECT_FALSE(look(kNow + 4s));
  suspicions_.report(slot(0), slot(1), "reset");
  EXPECT_TRUE(look(kNow + 4s));
}

TEST_F(SuspicionsTest, MembersThatFollowWaitForTheOneThatWasAsked) {
  see(1, Seen::kStopped, kNow);
  slot(1).evidence->soft = slot(1).evidence->follows = true;
  slot(1).stream = {};
  look(kNow);
  EXPECT_FALSE(look(kNow + config_.save_timeout - 1s));
  EXPECT_TRUE(look(kNow + config_.save_timeout));
}

TEST_F(SuspicionsTest, RanksWhoseWeightsDifferAreEvidenceUntilTheViewIsOver) {
  suspicions_.differ({2}, "most ranks after 32 steps", kNow);
  look(kNow);
  const std::optional<api::Fault> verdict = look(kNow + config_.grace);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, api::FaultKind::kDiverged);
  EXPECT_EQ(verdict->rank, 2);
  suspicions_.view_is_over();
  EXPECT_TRUE(suspicions_.open()) << "until the next look";
  EXPECT_FALSE(look(kNow + 10s));
  EXPECT_FALSE(suspicions_.open());
}

TEST_F(SuspicionsTest, WindowOfThoseThatAreLeftBeginsWithWhatWasSeenOfThem) {
  see(0, Seen::kStreamEnded, kNow);
  see(1, Seen::kStreamEnded, kNow - 100ms);
  look(kNow);
  slot(0).evidence.reset();
  suspicions_.go_on_without(slot(0));
  EXPECT_EQ(suspicions_.since(), kNow - 100ms);
  suspicions_.report(slot(2), slot(1), "reset");
  suspicions_.go_on_without(slot(0));
  EXPECT_FALSE(suspicions_.open()) << "reports have their time anew";
}

TEST_F(SuspicionsTest, NextViewDropsReportsOnlyWhereTheLostOneWasInTheView) {
  suspicions_.report(slot(0), slot(1), "reset");
  look(kNow);
  suspicions_.leave_behind(false);
  EXPECT_TRUE(suspicions_.has_report_by(slot(0)));
  EXPECT_EQ(suspicions_.since(), kNow);
  suspicions_.leave_behind(true);
  EXPECT_FALSE(suspicions_.has_report_by(slot(0)));
  EXPECT_FALSE(suspicions_.open());
}

}  // namespace
}  // namespace paceline::coordinator
