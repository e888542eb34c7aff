#include "controller/lease/leader_elector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_clock.h"

namespace paceline::lease {
namespace {

using std::chrono::seconds;

constexpr Duration kPatience = seconds(60);

class MemoryLease final : public LeaseStore {
 public:
  absl::StatusOr<std::optional<Seen>> read() override {
    auto state = state_.lock();
    if (!state->why.empty()) return absl::UnavailableError(state->why);
    return state->stored;
  }
  absl::StatusOr<Seen> write(const ElectionCore::Write& write) override {
    bool held = true;
    auto state = state_.lock_when([](const State& s) { return !s.hang; }, kPatience, &held);
    if (!state->why.empty()) return absl::UnavailableError(state->why);
    if (!write.version.empty() && !state->stored) return absl::NotFoundError("there is no lease");
    if (write.version.empty() ? state->stored.has_value() : state->stored->version != write.version) {
      return absl::AbortedError("conflict");
    }
    state->stored = Seen{write.record, std::to_string(++state->version)};
    return *state->stored;
  }
  struct State {
    std::optional<Seen> stored;
    std::uint64_t version = 0;
    std::string why;  // not empty: nothing works
    bool hang = false;
  };
  Guarded<State> state_;
};

class LeaderElectorTest : public ::testing::Test {
 protected:
  struct Heard {
    bool leading = false;
    std::string lost;
    std::vector<std::string> holders, troubles;
  };
  // Waits are over at once, and the clock has moved on by them.
  LeaderElector::Pause pause() {
    return [this](Duration time, const std::stop_token& stop) {
      clock_.advance(time);
      return !stop.stop_requested();
    };
  }
  ElectionCallbacks callbacks() {
    return {.on_leading = [this] { heard_.lock()->leading = true; },
            .on_lost = [this](const std::string& reason) { heard_.lock()->lost = reason; },
            .on_holder = [this](const std::string& who,
                                const std::string& /*address*/) { heard_.lock()->holders.push_back(who); },
            .on_trouble = [this](const std::string& why) { heard_.lock()->troubles.push_back(why); }};
  }
  template <typename Condition>
  bool wait_for(Condition condition) {
    bool held = false;
    (void)heard_.lock_when(condition, kPatience, &held);
    return held;
  }

  FakeClock clock_;
  MemoryLease lease_;
  Guarded<Heard> heard_;
};

TEST_F(LeaderElectorTest, LeadsAndReleases) {
  LeaderElector elector({.identity = "me"}, lease_, clock_, 1, pause(), callbacks());
  elector.start();
  ASSERT_TRUE(wait_for([](const Heard& h) { return h.leading; }));
  EXPECT_TRUE(elector.release().ok());
  EXPECT_FALSE(elector.leads());
  EXPECT_EQ(lease_.state_.lock()->stored->record.holder, "");
  EXPECT_EQ(lease_.state_.lock()->stored->record.duration_seconds, 1);
  EXPECT_EQ(heard_.lock()->lost, "") << "a release is no loss";
  EXPECT_THAT(heard_.lock()->holders, ::testing::ElementsAre("me"));
}

TEST_F(LeaderElectorTest, TakesOverFromOneThatIsGone) {
  lease_.state_.lock()->stored = Seen{{.holder = "gone", .duration_seconds = 15}, "0"};
  LeaderElector elector({.identity = "me"}, lease_, clock_, 1, pause(), callbacks());
  const TimePoint before = clock_.now();
  elector.start();
  ASSERT_TRUE(wait_for([](const Heard& h) { return h.leading; }));
  EXPECT_GE(clock_.now() - before, seconds(15));
  EXPECT_EQ(heard_.lock()->holders.front(), "gone");
}

TEST_F(LeaderElectorTest, ADeletedLeaseCostsNoLeadership) {
  std::atomic<int> made{0};  // anew
  const LeaderElector::Pause deleting = [&](Duration time, const std::stop_token& stop) {
    auto state = lease_.state_.lock();
    if (heard_.lock()->leading && state->stored) {
      state->stored.reset();
      ++made;
    }
    return pause()(time, stop);
  };
  LeaderElector elector({.identity = "me"}, lease_, clock_, 1, deleting, callbacks());
  elector.start();
  while (made < 5 && heard_.lock()->lost.empty()) std::this_thread::yield();
  EXPECT_TRUE(elector.release().ok());
  EXPECT_EQ(heard_.lock()->lost, "");
  EXPECT_THAT(heard_.lock()->holders, ::testing::ElementsAre("me")) << "nobody is told to look elsewhere";
}

TEST_F(LeaderElectorTest, FailingRenewalsAreALoss) {
  LeaderElector elector({.identity = "me"}, lease_, clock_, 1, pause(), callbacks());
  elector.start();
  ASSERT_TRUE(wait_for([](const Heard& h) { return h.leading; }));
  lease_.state_.lock()->why = "the server is on fire";
  ASSERT_TRUE(wait_for([](const Heard& h) { return !h.lost.empty(); }));
  EXPECT_FALSE(elector.leads());
}

TEST_F(LeaderElectorTest, WhyThereIsNoLeaderIsSaidOnceForEachReason) {
  const auto fail = [this](const char* why) { lease_.state_.lock()->why = why; };
  const auto hears = [this](std::size_t count) {
    return wait_for([count](const Heard& h) { return h.troubles.size() >= count; });
  };
  fail("leases is forbidden");
  std::atomic<int> tries{0};
  const LeaderElector::Pause counting = [&](Duration time, const std::stop_token& stop) {
    ++tries;
    return pause()(time, stop);
  };
  LeaderElector elector({.identity = "me"}, lease_, clock_, 1, counting, callbacks());
  elector.start();
  ASSERT_TRUE(hears(1));
  while (tries < 5) std::this_thread::yield();
  EXPECT_EQ(heard_.lock()->troubles.size(), 1u) << "not with every try";
  fail("no connection");
  ASSERT_TRUE(hears(2));
  fail("leases is forbidden");
  ASSERT_TRUE(hears(3));
  lease_.state_.lock()->why.clear();
  ASSERT_TRUE(wait_for([](const Heard& h) { return h.leading; }));
  fail("leases is forbidden");
  ASSERT_TRUE(hears(4)) << "it had been well in between";
  EXPECT_THAT(heard_.lock()->troubles, ::testing::ElementsAre("leases is forbidden", "no connection",
                                                              "leases is forbidden", "leases is forbidden"));
}

TEST_F(LeaderElectorTest, ARenewalThatHangsIsALoss) {
  LeaderElector elector({.identity = "me"}, lease_, clock_, 1, pause(), callbacks());
  elector.start();
  ASSERT_TRUE(wait_for([](const Heard& h) { return h.leading; }));
  lease_.state_.lock()->hang = true;
  clock_.advance(seconds(11));
  ASSERT_TRUE(wait_for([](const Heard& h) { return !h.lost.empty(); }));
  EXPECT_FALSE(elector.leads());
  lease_.state_.lock()->hang = false;  // lets the thread end
}

TEST_F(LeaderElectorTest, TheSecondReplicaFollowsTheFirstOne) {
  LeaderElector first({.identity = "first"}, lease_, clock_, 1, pause(), {});
  first.start();
  bool held = false;
  (void)lease_.state_.lock_when([](const MemoryLease::State& s) { return s.stored.has_value(); }, kPatience,
                                &held);
  ASSERT_TRUE(held);
  ASSERT_TRUE(first.release().ok());
  LeaderElector second({.identity = "second"}, lease_, clock_, 2, pause(), callbacks());
  second.start();
  ASSERT_TRUE(wait_for([](const Heard& h) { return h.leading; }));
  EXPECT_EQ(lease_.state_.lock()->stored->record.transitions, 1);
}

}  // namespace
}  // namespace paceline::lease
