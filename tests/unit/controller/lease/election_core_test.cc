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
  // The core asks to read, and is handed this.
  void sees(const std::optional<Seen>& seen, double now) {
    EXPECT_TRUE(reads(now));
    core_.on_read(seen, at(now));
  }
  Duration wait_after(const std::optional<Seen>& seen, double now) {
    sees(seen, now);
    return wait(now);
  }
  ElectionCore::Write write_after(const std::optional<Seen>& seen, double now) {
    sees(seen, now);
    return write(now);
  }
  // Acquires where there is none.
  void acquire(double now) {
    ASSERT_TRUE(reads(now));
    core_.on_read(std::nullopt, at(now));
    const ElectionCore::Write first = write(now);
    core_.on_written({first.record, "1"}, at(now));
    ASSERT_TRUE(core_.leads(at(now)));
  }
  void acquire_and_wait() {
    acquire(0);
    (void)wait(0);
  }
};

TEST_F(ElectionCoreTest, CreatesALeaseThatIsNotThere) {
  const ElectionCore::Write create = write_after(std::nullopt, 0);
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
  EXPECT_EQ(wait_after(held_by("other", "5"), 0), milliseconds(3200)) << "2 s and half of 1.2 times 2 s";
  EXPECT_EQ(wait_after(held_by("other", "5"), 14), milliseconds(3200)) << "seen for 14 s only";
  const ElectionCore::Write takeover = write_after(held_by("other", "5"), 17);
  EXPECT_EQ(takeover.version, "5");
  EXPECT_EQ(takeover.record.transitions, 1);
}

TEST_F(ElectionCoreTest, AnyChangeOfTheRecordBeginsTheWaitAnew) {
  (void)wait_after(held_by("other", "5"), 0);
  Seen renewed = held_by("other", "6");
  renewed.record.renewed = WallTime(seconds(-5000));  // its clock is hours behind: no matter
  (void)wait_after(renewed, 14);
  (void)wait_after(renewed, 28);
  EXPECT_EQ(write_after(renewed, 29).version, "6");
}

TEST_F(ElectionCoreTest, AReleasedLeaseIsTakenAtOnce) {
  EXPECT_EQ(write_after(held_by("", "5", 1), 0).version, "5");
}

TEST_F(ElectionCoreTest, ARefusedWriteIsNoLead) {
  (void)write_after(std::nullopt, 0);
  core_.on_conflict();
  EXPECT_FALSE(core_.leads(at(0)));
  EXPECT_GT(wait(0), seconds(2));
  sees(held_by("other", "5"), 3);
  EXPECT_EQ(core_.holder(), "other");
  EXPECT_GT(wait(3), seconds(2));
}

TEST_F(ElectionCoreTest, AWriteWhoseAnswerWasLostIsFoundAgain) {
  const ElectionCore::Write create = write_after(std::nullopt, 0);
  core_.on_error("connection reset");
  EXPECT_FALSE(core_.leads(at(0)));
  (void)wait(0);
  const ElectionCore::Write again = write_after(Seen{create.record, "1"}, 3);
  EXPECT_EQ(again.version, "1");
  EXPECT_EQ(again.record.transitions, 0);
  core_.on_written({again.record, "2"}, at(3));
  EXPECT_TRUE(core_.leads(at(3)));
}

TEST_F(ElectionCoreTest, ALeaderThatCannotRenewGivesUpBeforeOthersMayTakeIt) {
  acquire_and_wait();
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
  acquire_and_wait();
  (void)write(9.5);
  core_.on_error("x");
  EXPECT_EQ(wait(9.5), milliseconds(500));
}

TEST_F(ElectionCoreTest, ALeaderThatSeesAnotherHolderHasLost) {
  acquire_and_wait();
  (void)write(2);
  core_.on_conflict();
  ASSERT_TRUE(reads(2)) << "at once";
  core_.on_read(held_by("other", "9"), at(2));
  EXPECT_THAT(lost(2), HasSubstr("other"));
  EXPECT_FALSE(core_.leads(at(2)));
}

TEST_F(ElectionCoreTest, ALeaderWhoseLeaseSomebodyEditsGoesOnAtItsPace) {
  acquire_and_wait();
  (void)write(2);
  core_.on_conflict();
  EXPECT_EQ(wait_after(held_by("me", "9"), 2), seconds(2))
      << "or two who are never content would ask without end";
  EXPECT_EQ(write(4).version, "9");
}

TEST_F(ElectionCoreTest, ALeaseThatWasHeldAndIsGoneIsNotFreeAtOnce) {
  (void)wait_after(held_by("other", "5", 20), 0);
  EXPECT_GT(wait_after(std::nullopt, 3), seconds(2)) << "its holder may not know yet";
  (void)wait_after(std::nullopt, 22.9);
  EXPECT_EQ(write_after(std::nullopt, 23).version, "") << "it had renewed it at 3 s at the latest";
}

TEST_F(ElectionCoreTest, ALeaseWhoseHolderWasTakenOutIsNotFreeAtOnce) {
  (void)wait_after(held_by("other", "5"), 0);
  (void)wait_after(held_by("", "6"), 3);
  (void)wait_after(held_by("", "6"), 17.9);
  EXPECT_EQ(write_after(held_by("", "6"), 18).version, "6");
}

TEST_F(ElectionCoreTest, ALeaseThatIsGoneMayHaveHadAHolderWhomThisReplicaNeverSaw) {
  sees(held_by("", "5", 1), 0);  // given back
  (void)write(0);
  core_.on_conflict();  // another one has it
  (void)wait(0);
  (void)wait_after(std::nullopt, 3);
  EXPECT_EQ(write_after(std::nullopt, 18).version, "");
}

TEST_F(ElectionCoreTest, ALeaseThatWasGivenBackAfterItWasHeldIsTakenAtOnce) {
  (void)wait_after(held_by("other", "5"), 0);
  EXPECT_EQ(write_after(held_by("", "6", 1), 3).version, "6");
}

TEST_F(ElectionCoreTest, ALeaderMakesALeaseThatWasDeletedAgain) {
  acquire_and_wait();
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
  sees(held_by("other", "9"), 4);
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
  EXPECT_EQ(write_after(held_by("other", "5", -7), 0).version, "5");
  core_.on_conflict();
  (void)wait(0);
  (void)wait_after(held_by("other", "6", 2'000'000'000), 1);
  EXPECT_EQ(write_after(held_by("other", "6", 2'000'000'000), 90'000).version, "6");
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
