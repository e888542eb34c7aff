#include "controller/coordinator/core_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace paceline::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kWorkers = 3;

CoreConfig make_config() {
  CoreConfig config;
  config.job = "default/own";
  config.link_key = std::string(32, 'k');
  config.roles = {{Role::kWorker, kWorkers}};
  config.listens = true;
  return config;
}

// By the interface that the shell has.
class ListenerTest : public ::testing::Test {
 protected:
  Effects attach(int index, std::uint64_t stream, std::int64_t incarnation = 0, std::int64_t attempt = 0) {
    v1::Hello hello;
    hello.set_protocol_version(kProtocolVersion);
    hello.set_job("default/own");
    hello.set_role(v1::ROLE_WORKER);
    hello.set_index(static_cast<std::uint32_t>(index));
    hello.set_incarnation(incarnation);
    hello.set_attempt(attempt);
    hello.set_member_id("id-" + std::to_string(index) + "-" + std::to_string(incarnation));
    hello.set_pod("own-worker-" + std::to_string(index) + "-" + std::to_string(incarnation));
    return core_.step(Attached{{stream}, hello}, now_);
  }
  Effects beat(std::uint64_t stream, Step step, milliseconds own, bool tells = true) {
    v1::MemberMessage message;
    v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
    heartbeat.set_number(++number_);
    heartbeat.set_step(step);
    if (tells) {
      v1::StepTimes times;
      times.set_compute_ns(Duration(own).count());
      times.set_wait_ns(Duration(milliseconds(600) - own).count());
      times.set_step_ns(Duration(milliseconds(600)).count());
      *heartbeat.mutable_times() = times;
      heartbeat.set_steps(1);
      heartbeat.add_step_time_steps(step);
      *heartbeat.add_step_times() = times;
    }
    return core_.step(Received{{stream}, message}, now_);
  }
  // A step of members 0 to `members` - 1, in which `slow` takes twice as long. What was found or cleared.
  std::vector<StragglerChange> step(Step step, int members = kWorkers) {
    std::vector<StragglerChange> changes;
    now_ += milliseconds(600);
    for (int i = 0; i < members; ++i) {
      const Effects effects =
          beat(static_cast<std::uint64_t>(i + 1), step, milliseconds(i == slow_ ? 600 : 300));
      changes.insert(changes.end(), effects.stragglers.begin(), effects.stragglers.end());
    }
    return changes;
  }
  std::vector<int> ranks() const {
    std::vector<int> found;
    for (const MemberReport& each : core_.report(now_).members) found.push_back(each.rank);
    return found;
  }

  int slow_ = 1;
  TimePoint now_{};
  CoordinatorCore core_{make_config(), now_};
  std::uint64_t number_ = 0;
};

TEST_F(ListenerTest, SlowMemberIsFoundByWhatProgramsTell) {
  for (int i = 0; i < kWorkers; ++i) attach(i, static_cast<std::uint64_t>(i + 1));
  std::vector<StragglerChange> changes;
  for (Step i = 1; i < 100 && changes.empty(); ++i) changes = step(i);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].found);
  EXPECT_EQ(changes[0].straggler.index, 1);
  EXPECT_EQ(changes[0].straggler.rank, 1);
  EXPECT_EQ(changes[0].straggler.part, "compute");
  EXPECT_DOUBLE_EQ(changes[0].straggler.factor, 2);
  const Report report = core_.report(now_);
  ASSERT_TRUE(report.stragglers);
  EXPECT_EQ(report.stragglers->size(), 1U);
  EXPECT_DOUBLE_EQ(report.members[1].telemetry.compute_ms, 600);
  EXPECT_GT(report.step, 0);
}

TEST_F(ListenerTest, ViewHoldsTheMembersThatTell) {
  EXPECT_FALSE(attach(0, 1).view);
  attach(2, 3);
  EXPECT_FALSE(beat(1, 0, {}, false).view);
  EXPECT_THAT(ranks(), ElementsAre(-1, -1, -1));
  EXPECT_THAT(beat(3, 1, milliseconds(300)).view->members, ElementsAre("worker-2"));
  EXPECT_THAT(beat(1, 1, milliseconds(300)).view->members, ElementsAre("worker-0", "worker-2"));
  EXPECT_FALSE(beat(3, 2, milliseconds(300)).view);
  EXPECT_THAT(ranks(), ElementsAre(0, -1, 2)) << "as RANK says";
}

TEST_F(ListenerTest, SilentMemberIsWaitedForByNobody) {
  for (int i = 0; i < kWorkers; ++i) attach(i, static_cast<std::uint64_t>(i + 1));
  std::vector<StragglerChange> changes;
  for (Step i = 1; i < 100 && changes.empty(); ++i) {
    beat(3, 0, {}, false);
    changes = step(i, 2);
  }
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].straggler.index, 1);
}

TEST_F(ListenerTest, NothingIsDecided) {
  attach(0, 1);
  beat(1, 1, milliseconds(300));
  for (const Input& input :
       std::vector<Input>{StreamEnded{{1}, "it broke"}, Tick{}, Stop{"the user stops the job"},
                          PodFact{.index = 0, .exit_code = 1}}) {
    now_ += seconds(1000);
    const Effects effects = core_.step(input, now_);
    EXPECT_THAT(effects.send, IsEmpty());
    EXPECT_FALSE(effects.verdict);
  }
  const Report report = core_.report(now_);
  EXPECT_EQ(report.state, JobState::kRunning);
  EXPECT_THAT(report.lost, IsEmpty());
  EXPECT_EQ(core_.due(), TimePoint::max());
}

TEST_F(ListenerTest, AStreamThatBreaksCostsNoEvidence) {
  for (int i = 0; i < kWorkers; ++i) attach(i, static_cast<std::uint64_t>(i + 1));
  Step i = 1;
  while (i < 100 && step(i).empty()) ++i;
  core_.step(StreamEnded{{2}, "it broke"}, now_);
  EXPECT_FALSE(core_.report(now_).members[1].attached);
  EXPECT_FALSE(attach(1, 2).view);
  EXPECT_THAT(step(++i), IsEmpty());
  EXPECT_EQ(core_.report(now_).stragglers->size(), 1U);
}

TEST_F(ListenerTest, AnotherMemberInThePlaceIsNotTheOldOne) {
  for (int i = 0; i < kWorkers; ++i) attach(i, static_cast<std::uint64_t>(i + 1));
  Step i = 1;
  while (i < 100 && step(i).empty()) ++i;
  const Effects effects = attach(1, 9, 1);
  EXPECT_THAT(effects.close, ElementsAre(StreamId{2}));
  EXPECT_THAT(effects.view->members, ElementsAre("worker-0", "worker-2"));
  ASSERT_EQ(effects.stragglers.size(), 1U);
  EXPECT_FALSE(effects.stragglers[0].found);
  EXPECT_THAT(attach(1, 10, 0).close, ElementsAre(StreamId{10})) << "an earlier pod's";
}

TEST_F(ListenerTest, MemberFarBehindAndQuietIsWaitedForNoMore) {
  for (int i = 0; i < kWorkers; ++i) attach(i, static_cast<std::uint64_t>(i + 1));
  Step i = 1;
  for (; i < 30; ++i) step(i);
  for (; i < 30 + Listener::kFarBehind; ++i) step(i, 2);
  EXPECT_EQ(ranks()[2], 2);
  step(i, 2);
  EXPECT_THAT(ranks(), ElementsAre(0, 1, -1));
}

TEST_F(ListenerTest, StrangerIsRefused) {
  EXPECT_THAT(attach(kWorkers, 1).close, ElementsAre(StreamId{1}));
  const Effects later = attach(0, 2, 0, 7);
  EXPECT_THAT(later.close, ElementsAre(StreamId{2}));
  EXPECT_THAT(later.send, IsEmpty()) << "it finds its own coordinator when it comes again";
  attach(0, 3);
  v1::MemberMessage message;
  message.mutable_heartbeat()->set_generation(99);
  EXPECT_THAT(core_.step(Received{{3}, message}, now_).close, ElementsAre(StreamId{3}));
}

}  // namespace
}  // namespace paceline::coordinator
