#include "controller/coordinator/core_stragglers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline::coordinator {
namespace {

using std::chrono::milliseconds;

class StragglersTest : public ::testing::Test {
 protected:
  StragglersTest() : slots_(4) {
    for (int i = 0; i < 4; ++i) {
      Slot& slot = slots_[static_cast<std::size_t>(i)];
      slot.index = i;
      slot.rank = 3 - i;
      slot.hello.emplace();
      slot.hello->set_member_id("id-" + std::to_string(i));
      slot.hello->set_pod("job-worker-" + std::to_string(i));
      slot.hello->set_host("node-" + std::to_string(i));
      slot.telemetry.kernel.emplace().throttled = i == slow_ ? 0.5 : 0;
    }
    stragglers_.begin_view(slots_);
  }

  // A step of 300 ms; that of `slow_` takes twice as long.
  std::vector<StragglerChange> step() {
    ++step_;
    for (int i = 0; i < 4; ++i) {
      const Slot& slot = slots_[static_cast<std::size_t>(i)];
      const milliseconds own(i == slow_ ? 600 : 300);
      const StepTimes times{.compute = own, .wait = milliseconds(600) - own, .step = milliseconds(600)};
      stragglers_.add(slot, i, {Role::kWorker, i, slot.rank, {step_}, {times}});
    }
    return stragglers_.conclude(slots_);
  }
  std::vector<StragglerChange> step_until_change() {
    for (int i = 0; i < 100; ++i) {
      if (auto changes = step(); !changes.empty()) return changes;
    }
    return {};
  }

  // Each member tells of its link to the next rank; that of rank 1, the member with index 2, is slow, and
  // rank 2, the member with index 1, takes long to get its bytes.
  std::vector<StragglerChange> steps_with_slow_link() {
    for (Slot& slot : slots_) slot.telemetry.step_ms = 600;
    std::uint64_t bytes = 0;
    std::vector<StragglerChange> all;
    for (int round = 0; round < 200; ++round) {
      bytes += 50'000'000;
      ++step_;
      for (int i = 0; i < 4; ++i) {
        const Slot& slot = slots_[static_cast<std::size_t>(i)];
        v1::Links links;
        links.set_at_ns((round + 1) * Duration(milliseconds(600)).count());
        v1::LinkStats& link = *links.add_links();
        link.set_rank(static_cast<std::uint32_t>((slot.rank + 1) % 4));
        link.set_bytes(bytes);
        link.set_rate(slot.rank == 1 ? 1e8 : 1e10);
        stragglers_.add_links(slot, i, links);
        const milliseconds transfer(slot.rank == 2 ? 500 : 20);
        const StepTimes times{
            .compute = milliseconds(80), .wait = milliseconds(520) - transfer, .transfer = transfer};
        stragglers_.add(slot, i, {Role::kWorker, i, slot.rank, {step_}, {times}});
      }
      for (StragglerChange& each : stragglers_.conclude(slots_)) all.push_back(std::move(each));
    }
    return all;
  }

  int slow_ = 2;
  std::vector<Slot> slots_;
  Stragglers stragglers_{true};
  Step step_ = 0;
};

TEST_F(StragglersTest, FindingOfAnEarlierCoordinatorStaysUntilTheTestSaysOtherwise) {
  const std::vector<StragglerChange> before = step_until_change();
  ASSERT_EQ(before.size(), 1U);
  for (const int slow : {2, -1}) {
    slow_ = slow;
    stragglers_ = Stragglers(true, {before[0].straggler});
    EXPECT_FALSE(stragglers_.now(slots_)) << "no view has begun";
    stragglers_.begin_view(slots_);
    ASSERT_TRUE(stragglers_.now(slots_));
    EXPECT_EQ(stragglers_.now(slots_)->size(), 1U);
    const std::vector<StragglerChange> changes = step_until_change();
    ASSERT_EQ(changes.size(), slow == 2 ? 0U : 1U);
    EXPECT_EQ(stragglers_.now(slots_)->size(), slow == 2 ? 1U : 0U);
    for (const StragglerChange& change : changes) EXPECT_FALSE(change.found);
  }
}

TEST_F(StragglersTest, FindingOfAnEarlierCoordinatorGoesWithItsPod) {
  const std::vector<StragglerChange> before = step_until_change();
  ASSERT_EQ(before.size(), 1U);
  stragglers_ = Stragglers(true, {before[0].straggler});
  slots_[2].hello->set_pod("job-worker-2-1");
  stragglers_.begin_view(slots_);
  ASSERT_TRUE(stragglers_.now(slots_));
  EXPECT_TRUE(stragglers_.now(slots_)->empty());
}

TEST_F(StragglersTest, FindingBecomesAStragglerWithItsMemberAndItsCause) {
  EXPECT_FALSE(stragglers_.now(slots_));
  const auto changes = step_until_change();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].found);
  const api::Straggler& straggler = changes[0].straggler;
  EXPECT_EQ(straggler.kind, api::StragglerKind::kSlow);
  EXPECT_EQ(straggler.index, 2);
  EXPECT_EQ(straggler.rank, 1);
  EXPECT_EQ(straggler.pod, "job-worker-2");
  EXPECT_EQ(straggler.host, "node-2");
  EXPECT_EQ(straggler.part, "compute");
  EXPECT_DOUBLE_EQ(straggler.factor, 2);
  EXPECT_DOUBLE_EQ(straggler.own_ms, 600);
  EXPECT_DOUBLE_EQ(straggler.typical_ms, 300);
  EXPECT_DOUBLE_EQ(straggler.lost_ms, 300);
  EXPECT_EQ(straggler.cause, api::StragglerCause::kCpuQuota);
  EXPECT_FALSE(straggler.message.empty());
  EXPECT_TRUE(step().empty());
  ASSERT_TRUE(stragglers_.now(slots_));
  EXPECT_EQ(stragglers_.now(slots_)->size(), 1U);
}

TEST_F(StragglersTest, CauseIsTheOneThatIsSeenMostOften) {
  ASSERT_EQ(step_until_change().size(), 1U);
  const auto cause = [&] { return stragglers_.now(slots_)->at(0).cause; };
  KernelTelemetry& kernel = *slots_[2].telemetry.kernel;
  kernel = {.run_delay = 0.9};
  (void)step();
  EXPECT_EQ(cause(), api::StragglerCause::kCpuQuota) << "another one, of a moment";
  kernel = {};
  for (int i = 0; i < 2; ++i) (void)step();
  EXPECT_EQ(cause(), api::StragglerCause::kCpuQuota) << "nothing, for a while";
  kernel = {.run_delay = 0.9};
  for (int i = 0; i < 10; ++i) (void)step();
  EXPECT_EQ(cause(), api::StragglerCause::kCpuContention);
}

TEST_F(StragglersTest, StragglerIsClearedOnce) {
  step_until_change();
  slow_ = -1;
  const auto changes = step_until_change();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_FALSE(changes[0].found);
  EXPECT_EQ(changes[0].straggler.index, 2);
  EXPECT_TRUE(stragglers_.now(slots_)->empty());
}

TEST_F(StragglersTest, NewMemberInThePlaceIsNotTheOldOne) {
  step_until_change();
  slots_[2].hello->set_member_id("another");
  slow_ = -1;
  stragglers_.begin_view(slots_);
  const auto changes = step_until_change();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_FALSE(changes[0].found);
}

TEST_F(StragglersTest, FindingStandsUntilTimesWithOtherSharesAreKnown) {
  step_until_change();
  EXPECT_EQ(stragglers_.own_times().size(), 4U);
  const std::vector<std::int64_t> samples = {36, 20, 36, 36};
  stragglers_.begin_view(slots_, samples, true);
  slow_ = -1;
  EXPECT_TRUE(stragglers_.settles());
  EXPECT_TRUE(stragglers_.own_times().empty());
  int steps = 0;
  while (stragglers_.settles()) {
    ASSERT_EQ(stragglers_.now(slots_)->size(), 1U);
    EXPECT_EQ(stragglers_.now(slots_)->front().index, 2);
    const auto changes = step();
    ++steps;
    EXPECT_EQ(changes.size(), stragglers_.settles() ? 0U : 1U);
  }
  EXPECT_EQ(steps, stragglers::kWarmUp + stragglers::kLeastBlocks);
  EXPECT_TRUE(stragglers_.now(slots_)->empty());
}

TEST_F(StragglersTest, FindingOfAMemberThatIsGoneDoesNotStand) {
  step_until_change();
  slots_[2].rank = -1;
  slots_[3].rank = 0;
  slots_[1].rank = 1;
  slots_[0].rank = 2;
  stragglers_.begin_view(slots_, {}, true);
  EXPECT_TRUE(stragglers_.settles());
  const auto changes = stragglers_.conclude(slots_);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_FALSE(changes[0].found);
}

TEST_F(StragglersTest, MemberIsNotToldOfForTheSamplesThatItWasGiven) {
  // The rank of the member with index 2 is 1.
  stragglers_.begin_view(slots_, std::vector<std::int64_t>{32, 64, 32, 32}, true);
  EXPECT_TRUE(step_until_change().empty());
}

TEST_F(StragglersTest, MemberThatLeftTheViewIsAStragglerNoMore) {
  step_until_change();
  slots_[2].rank = -1;
  slots_[3].rank = 0;
  slots_[1].rank = 1;
  slots_[0].rank = 2;
  stragglers_.begin_view(slots_);
  const auto changes = stragglers_.conclude(slots_);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_FALSE(changes[0].found);
}

TEST_F(StragglersTest, SlowLinkIsNamedAndExplainsWhoMovesBytesSlowly) {
  slots_[2].telemetry.kernel->throttled = 0;
  const std::vector<StragglerChange> all = steps_with_slow_link();
  const auto now = stragglers_.now(slots_);
  ASSERT_TRUE(now);
  ASSERT_EQ(now->size(), 1U) << "the receiver's transfer is the link's";
  const api::Straggler& link = now->front();
  EXPECT_EQ(link.kind, api::StragglerKind::kSlowLink);
  EXPECT_EQ(link.index, 2);
  EXPECT_EQ(link.peer, "worker-1");
  EXPECT_EQ(link.peer_pod, "job-worker-1");
  EXPECT_NEAR(link.factor, 100, 1);
  EXPECT_NEAR(link.lost_ms, 500, 20);
  EXPECT_EQ(link.part, "transfer");
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(all.back().found);
}

TEST_F(StragglersTest, CauseThatAMemberTellsOfItselfExplainsItsLinks) {
  slots_[2].telemetry.kernel->throttled = 0;
  slots_[1].telemetry.kernel->throttled = 0.5;
  steps_with_slow_link();
  const auto now = stragglers_.now(slots_);
  ASSERT_TRUE(now);
  ASSERT_EQ(now->size(), 1U);
  EXPECT_EQ(now->front().kind, api::StragglerKind::kSlow);
  EXPECT_EQ(now->front().index, 1);
  EXPECT_EQ(now->front().cause, api::StragglerCause::kCpuQuota);
}

TEST_F(StragglersTest, NothingIsFoundWhereAStepWaitsForNobody) {
  stragglers_ = Stragglers(false);
  stragglers_.begin_view(slots_);
  EXPECT_TRUE(step_until_change().empty());
  EXPECT_FALSE(stragglers_.now(slots_));
}

}  // namespace
}  // namespace paceline::coordinator
