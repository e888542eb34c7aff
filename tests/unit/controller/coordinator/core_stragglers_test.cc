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

  int slow_ = 2;
  std::vector<Slot> slots_;
  Stragglers stragglers_{true};
  Step step_ = 0;
};

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

TEST_F(StragglersTest, NothingIsFoundWhereAStepWaitsForNobody) {
  stragglers_ = Stragglers(false);
  stragglers_.begin_view(slots_);
  EXPECT_TRUE(step_until_change().empty());
  EXPECT_FALSE(stragglers_.now(slots_));
}

}  // namespace
}  // namespace paceline::coordinator
