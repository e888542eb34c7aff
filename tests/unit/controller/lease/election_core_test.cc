#include "controller/lease/election_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::lease {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

TimePoint at(double seconds_since) {
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1000 + seconds_since)));
}
constexpr WallTime kWall{};

class ElectionCoreTest : public ::testing::Test {
 protected:
  ElectionCore core_{{.identity = "me"}};

  ElectionCore::Action next(double now) { return core_.next(at(now), kWall, 0.5); }
  ElectionCore::Write write(double now) { return std::get<ElectionCore::Write>(next(now)); }
  Duration wait(double now) { return std::get<ElectionCore::Wait>(next(now)).time; }
  std::string lost(double now) { return std::get<ElectionCore::Lost>(next(now)).reason; }
  bool reads(double now) { return std::holds_alternative<ElectionCore::Read>(next(now)); }
  static Seen held_by(std::string holder, std::string version, int duration = 15) {
    return {{.holder = std::move(holder), .duration_seconds = duration}, std::move(version)};
  }
  // Acquires where there is none.
  void acquire(double now) {
    ASSERT_TRUE(reads(now));
    core_.on_read(std::nullopt, at(now));
    const ElectionCore::Write first = write(now);
    core_.on_written({first.record, "1"}, at(now));
    ASSERT_TRUE(core_.leads(at(now)));
  }
};

TEST_F(ElectionCoreTest, CreatesALeaseThatIsNotThere) {
  EXPECT_TRUE(reads(0));
  core_.on_read(std::nullopt, at(0));
  const ElectionCore::Write create = write(0);
  EXPECT_EQ(create.version, "");
  EXPECT_EQ(create.record.holder, "me");
  EXPECT_EQ(create.record.duration_seconds, 15);
  EXPECT_EQ(create.record.transitions, 0);
  EXPECT_FALSE(core_.leads(at(0)));
  core_.on_written({create.record, "1"}, at(1));
  EXPECT_TRUE(core_.leads(at(9.9)));
  EXPECT_FALSE(core_.leads(at(10))) << "counted from the beginning of the write, not from its end";
}

TEST_F(ElectionCoreTest, RenewsWithoutReading) {
  acquire(0);
  EXPECT_EQ(wait(0), seconds(2));
  const ElectionCore::Write renewal = write(2);
  EXPECT_EQ(renewal.version, "1");
  EXPECT_EQ(renewal.record.transitions, 0);
  core_.on_written({renewal.record, "2"}, at(2));
  EXPECT_TRUE(core_.leads(at(11.9)));
  EXPECT_FALSE(core_.leads(at(12)));
}

TEST_F(ElectionCoreTest, WaitsUntilALeaseHasNotChangedForItsDuration) {
  ASSERT_TRUE(reads(0));
  core_.on_read(held_by("other", "5"), at(0));
  EXPECT_EQ(wait(0), milliseconds(3200)) << "2 s and half of 1.2 times 2 s";
  ASSERT_TRUE(reads(14));
  core_.on_read(held_by("other", "5"), at(14));
  EXPECT_EQ(wait(14), milliseconds(3200)) << "seen for 14 s only";
  ASSERT_TRUE(reads(17));
  core_.on_read(held_by("other", "5"), at(17));
  const ElectionCore::Write takeover = write(17);
  EXPECT_EQ(takeover.version, "5");
  EXPECT_EQ(takeover.record.transitions, 1);
}

TEST_F(ElectionCoreTest, AnyChangeOfTheRecordBeginsTheWaitAnew) {
  ASSERT_TRUE(reads(0));
  core_.on_read(held_by("other", "5"), at(0));
  (void)wait(0);
  Seen renewed = held_by("other", "6");
  renewed.record.renewed = WallTime(seconds(-5000));  // its clock is hours behind: no matter
  ASSERT_TRUE(reads(14));
  core_.on_read(renewed, at(14));
  (void)wait(14);
  ASSERT_TRUE(reads(28));
  core_.on_read(renewed, at(28));
  (void)wait(28);
  ASSERT_TRUE(reads(29));
  core_.on_read(renewed, at(29));
  EXPECT_EQ(write(29).version, "6");
}

TEST_F(ElectionCoreTest, AReleasedLeaseIsTakenAtOnce) {
  ASSERT_TRUE(reads(0));
  core_.on_read(held_by("", "5", 1), at(0));
  EXPECT_EQ(write(0).version, "5");
}

TEST_F(ElectionCoreTest, ARefusedWriteIsNoLead) {
  ASSERT_TRUE(reads(0));
  core_.on_read(std::nullopt, at(0));
  (void)write(0);
  core_.on_conflict();
  EXPECT_FALSE(core_.leads(at(0)));
  EXPECT_GT(wait(0), seconds(2));
  ASSERT_TRUE(reads(3));
  core_.on_read(held_by("other", "5"), at(3));
  EXPECT_EQ(core_.holder(), "other");
  EXPECT_GT(wait(3), seconds(2));
}

TEST_F(ElectionCoreTest, AWriteWhoseAnswerWasLostIsFoundAgain) {
  ASSERT_TRUE(reads(0));
  core_.on_read(std::nullopt, at(0));
  const ElectionCore::Write create = write(0);
  core_.on_error("connection reset");
  EXPECT_FALSE(core_.leads(at(0)));
  (void)wait(0);
  ASSERT_TRUE(reads(3));
  core_.on_read(Seen{create.record, "1"}, at(3));
  const ElectionCore::Write again = write(3);
  EXPECT_EQ(again.version, "1");
  EXPECT_EQ(again.record.transitions, 0);
  core_.on_written({again.record, "2"}, at(3));
  EXPECT_TRUE(core_.leads(at(3)));
}

TEST_F(ElectionCoreTest, ALeaderThatCannotRenewGivesUpBeforeOthersMayTakeIt) {
  acquire(0);
  (void)wait(0);
  for (double now = 2; now < 9; now += 2) {
    if (now == 2) {
      (void)write(now);
    } else {
      ASSERT_TRUE(reads(now));
    }
    core_.on_error("no route to host");
    (void)wait(now);
  }
  EXPECT_TRUE(core_.leads(at(9.9)));
  EXPECT_THAT(lost(10), HasSubstr("within 10.0 s: no route to host"));
  EXPECT_FALSE(core_.leads(at(9.9))) << "and for good";
  EXPECT_THAT(lost(11), HasSubstr("no route to host"));
}

TEST_F(ElectionCoreTest, ALeaderDoesNotWaitPastItsEnd) {
  acquire(0);
  (void)wait(0);
  (void)write(9.5);
  core_.on_error("x");
  EXPECT_EQ(wait(9.5), milliseconds(500));
}

TEST_F(ElectionCoreTest, ALeaderThatSeesAnotherHolderHasLost) {
  acquire(0);
  (void)wait(0);
  (void)write(2);
  core_.on_conflict();
  ASSERT_TRUE(reads(2)) << "at once";
  core_.on_read(held_by("other", "9"), at(2));
  EXPECT_THAT(lost(2), HasSubstr("other"));
  EXPECT_FALSE(core_.leads(at(2)));
}

TEST_F(ElectionCoreTest, ALeaderWhoseLeaseSomebodyEditsGoesOnAtItsPace) {
  acquire(0);
  (void)wait(0);
  (void)write(2);
  core_.on_conflict();
  ASSERT_TRUE(reads(2));
  core_.on_read(held_by("me", "9"), at(2));
  EXPECT_EQ(wait(2), seconds(2)) << "or two who are never content would ask without end";
  EXPECT_EQ(write(4).version, "9");
}

TEST_F(ElectionCoreTest, ALeaseThatWasHeldAndIsGoneIsNotFreeAtOnce) {
  ASSERT_TRUE(reads(0));
  core_.on_read(held_by("other", "5", 20), at(0));
  (void)wait(0);
  ASSERT_TRUE(reads(3));
  core_.on_read(std::nullopt, at(3));
  EXPECT_GT(wait(3), seconds(2)) << "its holder may not know yet";
  ASSERT_TRUE(reads(22.9));
  core_.on_read(std::nullopt, at(22.9));
  (void)wait(22.9);
  ASSERT_TRUE(reads(23));
  core_.on_read(std::nullopt, at(23));
  EXPECT_EQ(write(23).version, "") << "it had renewed it at 3 s at the latest";
}

TEST_F(ElectionCoreTest, ALeaseWhoseHolderWasTakenOutIsNotFreeAtOnce) {
  ASSERT_TRUE(reads(0));
  core_.on_read(held_by("other", "5"), at(0));
  (void)wait(0);
  ASSERT_TRUE(reads(3));
  core_.on_read(held_by("", "6"), at(3));
  (void)wait(3);
  ASSERT_TRUE(reads(17.9));
  core_.on_read(held_by("", "6"), at(17.9));
  (void)wait(17.9);
  ASSERT_TRUE(reads(18));
  core_.on_read(held_by("", "6"), at(18));
  EXPECT_EQ(write(18).version, "6");
}

TEST_F(ElectionCoreTest, ALeaseThatIsGoneMayHaveHadAHolderWhomThisReplicaNeverSaw) {
  ASSERT_TRUE(reads(0));
  core_.on_read(held_by("", "5", 1), at(0));  // given back
  (void)write(0);
  core_.on_conflict();  // another one has it
  (void)wait(0);
  ASSERT_TRUE(reads(3));
  core_.on_read(std::nullopt, at(3));
  (void)wait(3);
  ASSERT_TRUE(reads(18));
  core_.on_read(std::nullopt, at(18));
  EXPECT_EQ(write(18).version, "");
}

TEST_F(ElectionCoreTest, ALeaseThatWasGivenBackAfterItWasHeldIsTakenAtOnce) {
  ASSERT_TRUE(reads(0));
  core_.on_read(held_by("other", "5"), at(0));
  (void)wait(0);
  ASSERT_TRUE(reads(3));
  core_.on_read(held_by("", "6", 1), at(3));
  EXPECT_EQ(write(3).version, "6");
}

TEST_F(ElectionCoreTest, ALeaderMakesALeaseThatWasDeletedAgain) {
  acquire(0);
  (void)wait(0);
  (void)write(2);
  core_.on_read(std::nullopt, at(2));  // the renewal found none
  EXPECT_TRUE(core_.leads(at(2)));
  const ElectionCore::Write again = write(2);
  EXPECT_EQ(again.version, "") << "only where nobody else has made it";
  EXPECT_EQ(again.record.holder, "me");
  core_.on_written({again.record, "7"}, at(2));
  EXPECT_TRUE(core_.leads(at(11.9)));
  EXPECT_EQ(wait(2), seconds(2));
  // Another one was faster.
  (void)write(4);
  core_.on_read(std::nullopt, at(4));
  (void)write(4);
  core_.on_conflict();
  ASSERT_TRUE(reads(4));
  core_.on_read(held_by("other", "9"), at(4));
  EXPECT_THAT(lost(4), HasSubstr("other"));
}

TEST_F(ElectionCoreTest, ReleaseNamesNobodyForASecond) {
  EXPECT_FALSE(core_.release(at(0), kWall));
  acquire(0);
  const auto release = core_.release(at(1), kWall);
  ASSERT_TRUE(release);
  EXPECT_EQ(release->record.holder, "");
  EXPECT_EQ(release->record.duration_seconds, 1);
  EXPECT_EQ(release->version, "1");
  EXPECT_FALSE(core_.release(at(10), kWall)) << "it may be another one's by now";
}

TEST_F(ElectionCoreTest, ANegativeOrEndlessDurationDoesNoHarm) {
  ASSERT_TRUE(reads(0));
  core_.on_read(held_by("other", "5", -7), at(0));
  EXPECT_EQ(write(0).version, "5");
  core_.on_conflict();
  (void)wait(0);
  ASSERT_TRUE(reads(1));
  core_.on_read(held_by("other", "6", 2'000'000'000), at(1));
  (void)wait(1);
  ASSERT_TRUE(reads(90'000));
  core_.on_read(held_by("other", "6", 2'000'000'000), at(90'000));
  EXPECT_EQ(write(90'000).version, "6");
}

TEST(ElectionConfigTest, Errors) {
  struct {
    ElectionConfig config;
    const char* error;
  } cases[] = {
      {{.identity = "a"}, ""},
      {{.identity = ""}, "identity"},
      {{.identity = "a", .lease_duration = milliseconds(15500)}, "whole number of seconds"},
      {{.identity = "a", .renew_deadline = seconds(15)}, "shorter than the lease duration"},
      {{.identity = "a", .retry_period = seconds(9)}, "longer than 1.2 times"},
      {{.identity = "a", .retry_period = seconds(0)}, "longer than 0 s"},
  };
  for (const auto& c : cases) {
    const std::string error = config_error(c.config);
    if (*c.error == '\0') {
      EXPECT_EQ(error, "");
    } else {
      EXPECT_THAT(error, HasSubstr(c.error));
    }
  }
}

}  // namespace
}  // namespace paceline::lease
