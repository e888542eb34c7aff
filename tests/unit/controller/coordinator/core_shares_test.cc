#include "controller/coordinator/core_shares.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline::coordinator {
namespace {

using api::StragglerAction;
using Samples = std::vector<std::int64_t>;

constexpr std::int64_t kBatch = 96;

std::vector<BatchShares::Member> members(int count, int from = 0) {
  std::vector<BatchShares::Member> all;
  for (int i = from; i < from + count; ++i)
    all.push_back({"id-" + std::to_string(i), "worker-" + std::to_string(i)});
  return all;
}

api::Straggler slow(double factor = 2, const char* part = "compute") {
  return {.kind = api::StragglerKind::kSlow, .index = 1, .part = part, .factor = factor};
}

class BatchSharesTest : public ::testing::Test {
 protected:
  explicit BatchSharesTest(RebalanceRules rules = {.factor = 1.2, .lost_seconds = 10})
      : shares_(kBatch, rules) {
    EXPECT_FALSE(shares_.begin_view(Generation{1}, members(3)));
  }

  // Seconds until other shares are due; -1: `most` did not do.
  int seconds_until_due(const std::vector<double>& own, std::vector<api::Straggler> found, int most = 1000,
                        std::optional<Duration> left = std::nullopt) {
    for (int second = 0; second <= most; ++second) {
      now_ += std::chrono::seconds(1);
      shares_.consider({.stragglers = found, .own_seconds = own, .left = left}, now_);
      if (shares_.due()) return second;
    }
    return -1;
  }
  api::Rebalance rebalance() {
    const auto change = shares_.begin_view(Generation{++generation_}, members(3));
    return change.value_or(api::Rebalance{});
  }

  BatchShares shares_;
  TimePoint now_{};
  std::uint64_t generation_ = 1;
};

TEST_F(BatchSharesTest, BeginEven) {
  EXPECT_EQ(shares_.samples(), (Samples{32, 32, 32}));
  EXPECT_TRUE(shares_.even());
  EXPECT_DOUBLE_EQ(shares_.share(0), 1.0 / 3);
}

TEST_F(BatchSharesTest, TextNamesAllThatTakeFewerAndCountsTheRest) {
  const auto text_with = [this](const Samples& samples) {
    std::vector<double> shares;
    for (const std::int64_t each : samples) shares.push_back(static_cast<double>(each) / kBatch);
    shares_.adopt(members(static_cast<int>(samples.size())), shares);
    return shares_.text();
  };
  EXPECT_EQ(text_with({38, 20, 38}), "worker-1 takes 20 of 96 samples, others up to 38");
  EXPECT_EQ(text_with({35, 16, 35, 10}), "worker-3 takes 10 of 96 samples, worker-1 16, others up to 35");
  EXPECT_EQ(
      text_with({4, 4, 4, 4, 4, 4, 12, 12, 12, 12, 12, 12}),
      "worker-0 takes 4 of 96 samples, worker-1 4, worker-2 4, worker-3 4, 2 more below 8, others up "
      "to 12");
}

TEST_F(BatchSharesTest, FollowSpeedOnceTheJobHasLostEnough) {
  // 0.122 s instead of 0.2: 39 % of the time.
  EXPECT_EQ(seconds_until_due({0.1, 0.2, 0.1}, {slow()}), 26);
  EXPECT_EQ(shares_.answer(slow()).action, StragglerAction::kRebalance);
  const api::Rebalance told = rebalance();
  EXPECT_EQ(told.generation, Generation{2});
  EXPECT_EQ(told.samples, (Samples{39, 19, 38}));
  EXPECT_FALSE(told.even);
  EXPECT_EQ(shares_.samples(), told.samples);
  EXPECT_DOUBLE_EQ(shares_.share(1), 19.0 / kBatch);
  EXPECT_FALSE(shares_.due());
}

TEST_F(BatchSharesTest, StayWhileNobodyIsFound) {
  EXPECT_EQ(seconds_until_due({0.1, 0.2, 0.1}, {}), -1);
}

TEST_F(BatchSharesTest, StayForWhatTheyCannotHelp) {
  api::Straggler link = slow(), more_work = slow(), all = slow();
  link.kind = api::StragglerKind::kSlowLink;
  more_work.kind = api::StragglerKind::kMoreWork;
  all.kind = api::StragglerKind::kAllSlow;
  for (const api::Straggler& each :
       {slow(2, "input"), slow(2, "update"), slow(2, "transfer"), slow(1.19), link, more_work, all}) {
    EXPECT_EQ(seconds_until_due({0.1, 0.2, 0.1}, {each}), -1);
    EXPECT_EQ(shares_.answer(each).action, StragglerAction::kReport);
    EXPECT_FALSE(shares_.answer(each).why.empty());
  }
}

TEST_F(BatchSharesTest, FollowSpeedWhereSeveralAreSlow) {
  api::Straggler some = slow();
  some.kind = api::StragglerKind::kAllSlow;
  some.members = 2;
  EXPECT_EQ(seconds_until_due({0.1, 0.2, 0.2}, {some}), 40);
  EXPECT_EQ(rebalance().samples, (Samples{48, 24, 24}));
}

TEST_F(BatchSharesTest, StayNearTheEnd) {
  EXPECT_EQ(seconds_until_due({0.1, 0.2, 0.1}, {slow()}, 1000, std::chrono::seconds(20)), -1);
  EXPECT_EQ(shares_.answer(slow()).action, StragglerAction::kWait);
}

TEST_F(BatchSharesTest, StayWhileTimesAreNotKnown) {
  EXPECT_EQ(seconds_until_due({}, {slow()}), -1);
  EXPECT_EQ(shares_.answer(slow()).action, StragglerAction::kWait);
}

TEST_F(BatchSharesTest, OnesThatFollowSpeedStayWhileTimesAreLevel) {
  ASSERT_GE(seconds_until_due({0.1, 0.2, 0.1}, {slow()}), 0);
  rebalance();
  EXPECT_EQ(seconds_until_due({0.121, 0.119, 0.119}, {}, 10000), -1);
  EXPECT_EQ(seconds_until_due({0.122, 0.124, 0.118}, {}, 10000), -1);
}

TEST_F(BatchSharesTest, AreEvenAgainOnceTheSlowOneHasRecovered) {
  ASSERT_GE(seconds_until_due({0.1, 0.2, 0.1}, {slow()}), 0);
  rebalance();
  // 0.1 instead of 0.122: 18 % of the time.
  EXPECT_EQ(seconds_until_due({0.122, 0.0594, 0.119}, {}), 112);
  const api::Rebalance told = rebalance();
  EXPECT_TRUE(told.even);
  EXPECT_EQ(told.samples, (Samples{32, 32, 32}));
  EXPECT_DOUBLE_EQ(shares_.share(1), 1.0 / 3);
}

TEST_F(BatchSharesTest, AreNoOthersAfterSecondsThatComeAndGo) {
  ASSERT_GE(seconds_until_due({0.1, 0.2, 0.1}, {slow()}), 0);
  rebalance();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(seconds_until_due({0.122, 0.0594, 0.119}, {}, 20), -1);
    EXPECT_EQ(seconds_until_due({0.121, 0.119, 0.119}, {}, 1), -1);
  }
}

TEST_F(BatchSharesTest, FollowWhoHasBecomeSlowerStill) {
  ASSERT_GE(seconds_until_due({0.1, 0.2, 0.1}, {slow()}), 0);
  rebalance();
  ASSERT_GE(seconds_until_due({0.12, 0.3, 0.12}, {slow()}), 0);
  EXPECT_LT(rebalance().samples[1], 12);
}

TEST_F(BatchSharesTest, AreEvenInAViewOfOtherMembers) {
  ASSERT_GE(seconds_until_due({0.1, 0.2, 0.1}, {slow()}), 0);
  rebalance();
  const auto told = shares_.begin_view(Generation{3}, members(2));
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->even);
  EXPECT_EQ(told->samples, (Samples{48, 48}));
  EXPECT_FALSE(shares_.begin_view(Generation{4}, members(2, 1))) << "they were even";
}

TEST_F(BatchSharesTest, StayInAnotherViewOfTheSameMembers) {
  ASSERT_GE(seconds_until_due({0.1, 0.2, 0.1}, {slow()}), 0);
  rebalance();
  EXPECT_FALSE(shares_.begin_view(Generation{3}, members(3)));
  EXPECT_FALSE(shares_.even());
}

TEST_F(BatchSharesTest, AreNotThoseOfAViewThatLostAMemberMeanwhile) {
  ASSERT_GE(seconds_until_due({0.1, 0.2, 0.1}, {slow()}), 0);
  EXPECT_FALSE(shares_.begin_view(Generation{2}, members(2)));
  EXPECT_TRUE(shares_.even());
}

TEST_F(BatchSharesTest, AreEvenAgainWithoutRules) {
  ASSERT_GE(seconds_until_due({0.1, 0.2, 0.1}, {slow()}), 0);
  rebalance();
  shares_.set_rules(std::nullopt);
  EXPECT_TRUE(shares_.due());
  EXPECT_TRUE(rebalance().even);
  EXPECT_FALSE(shares_.due());
}

TEST_F(BatchSharesTest, OfAnEarlierCoordinatorsViewAreWhatMembersSay) {
  shares_.adopt(members(3), std::vector<double>{39.0 / 96, 19.0 / 96, 38.0 / 96});
  EXPECT_EQ(shares_.samples(), (Samples{39, 19, 38}));
  EXPECT_FALSE(shares_.even());
  for (const std::vector<double>& wrong :
       {std::vector<double>{0, 0, 0}, {0.5, 0.2, 0.2}, {0.5, 0.7, -0.2}, {0.5, 0.5, 0.5}, {0.5, NAN, 0.5}}) {
    shares_.adopt(members(3), wrong);
    EXPECT_EQ(shares_.samples(), (Samples{32, 32, 32}));
    EXPECT_TRUE(shares_.even());
  }
}

TEST(BatchShares, OfABatchThatLeavesNothingToCutStayEven) {
  BatchShares shares(2, RebalanceRules{.lost_seconds = 0});
  EXPECT_FALSE(shares.begin_view(Generation{1}, members(3)));
  const std::vector<api::Straggler> found = {slow()};
  shares.consider({.stragglers = found, .own_seconds = {0.1, 0.2, 0.1}, .left = std::nullopt}, TimePoint{});
  EXPECT_FALSE(shares.due());
  EXPECT_EQ(shares.answer(slow()).action, StragglerAction::kReport);
}

}  // namespace
}  // namespace paceline::coordinator
