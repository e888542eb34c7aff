#include "runtime/trainer/partial_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/rng.h"

namespace paceline::trainer {
namespace {

using std::chrono::milliseconds;

constexpr Duration kRingRest = milliseconds(10);  // of a step, behind the slowest member
constexpr Duration kQuickTime = milliseconds(10), kSlowTime = milliseconds(35);

// Members that take 4 samples each, in passes of one, and sum their tables up as the exchange does.
class PartialRing {
 public:
  static constexpr std::int64_t kSamples = 4;

  explicit PartialRing(double max_drop_rate, int world = 2) {
    for (int rank = 0; rank < world; ++rank)
      members_.push_back(std::make_unique<PartialSteps>(
          max_drop_rate, 1, std::vector<std::int64_t>(static_cast<std::size_t>(world), kSamples), rank));
  }

  // `part`: how long one of `rank` takes. Returns the samples that were left out.
  std::int64_t step(const std::function<Duration(int rank)>& part) {
    std::int64_t left_out = 0;
    Duration longest{};
    for (int rank = 0; rank < size(); ++rank) {
      Duration at = part(rank);
      std::int64_t done = 1;
      for (; done < kSamples && member(rank).goes_on(done, at); ++done) at += part(rank);
      member(rank).computed(at);
      left_out += kSamples - done;
      longest = std::max(longest, at);
    }
    for (auto& each : members_) each->applied(longest + kRingRest, left_out);
    if (!member(0).full()) return left_out;
    std::vector<float> sum(member(0).table().size());
    for (auto& each : members_) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += each->table()[i];
    }
    for (auto& each : members_) {
      std::ranges::copy(sum, each->table().begin());
      each->choose();
    }
    return left_out;
  }

  // In every tenth step all parts of rank 1 are slow.
  std::int64_t steps_with_bursts(int count) {
    std::int64_t left_out = 0;
    for (int i = 0; i < count; ++i, ++taken_)
      left_out += step([&](int rank) { return rank == 1 && taken_ % 10 == 9 ? kSlowTime : kQuickTime; });
    return left_out;
  }

  PartialSteps& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(members_.size()); }

 private:
  std::vector<std::unique_ptr<PartialSteps>> members_;
  int taken_ = 0;
};

constexpr int kMeasuredSteps = PartialSteps::kWarmUp + PartialSteps::kWindow;

// 45 of 50 steps take 40 + 10 ms and 5 take 140 + 10 ms, 60 ms on average. A threshold of 40 ms ends the slow
// ones' computing after their first part: all take 50 ms, and 5 x 3 of 50 x 8 samples are left out. That is
// 0.9625 x 60 / 50 = 1.155 times as many samples in the same time.
TEST(PartialSteps, TheHandComputedThresholdIsChosen) {
  PartialRing ring(0.05);
  EXPECT_EQ(ring.steps_with_bursts(kMeasuredSteps), 0);
  for (int rank = 0; rank < ring.size(); ++rank) {
    const auto& threshold = ring.member(rank).threshold();
    ASSERT_TRUE(threshold);
    EXPECT_NEAR(std::chrono::duration<double>(threshold->tau).count(), 0.0404, 1e-6);
    EXPECT_NEAR(threshold->gain, 0.155, 1e-4);
    EXPECT_NEAR(threshold->drop_rate, 0.0375, 1e-4);
  }
}

TEST(PartialSteps, AThresholdThatLeavesOutTooMuchIsNone) {
  PartialRing ring(0.03);
  ring.steps_with_bursts(kMeasuredSteps);
  EXPECT_FALSE(ring.member(0).threshold());
}

TEST(PartialSteps, AThresholdThatGainsLittleIsNone) {
  PartialRing ring(0.5);
  for (int i = 0; i < kMeasuredSteps; ++i)
    ring.step([&](int rank) { return rank == 1 && i % 25 == 0 ? milliseconds(14) : kQuickTime; });
  EXPECT_FALSE(ring.member(0).threshold());
}

TEST(PartialSteps, TheRestOfALateStepIsLeftOutAndWhatItWouldHaveTakenIsKnown) {
  PartialRing ring(0.05);
  ring.steps_with_bursts(kMeasuredSteps);
  PartialSteps& late = ring.member(1);
  EXPECT_FALSE(late.goes_on(1, kSlowTime));
  EXPECT_EQ(std::chrono::round<milliseconds>(late.time_left_out()), milliseconds(3 * 10));  // a pause
  late.computed(kSlowTime);
  late.applied(kSlowTime + kRingRest, 3);
  EXPECT_TRUE(late.goes_on(1, milliseconds(14)));
  EXPECT_TRUE(late.goes_on(2, milliseconds(28)));
  EXPECT_FALSE(late.goes_on(3, milliseconds(42)));
  EXPECT_EQ(std::chrono::round<milliseconds>(late.time_left_out()), milliseconds(14));  // it is slow
  late.computed(milliseconds(42));
  late.applied(milliseconds(52), 1);
  for (std::int64_t done = 1; done < 4; ++done) EXPECT_TRUE(late.goes_on(done, done * kQuickTime));
  late.computed(4 * kQuickTime);
  EXPECT_EQ(late.time_left_out(), Duration::zero());
}

TEST(PartialSteps, AThresholdHoldsForSomeStepsAndIsThenMeasuredAnew) {
  PartialRing ring(0.05);
  ring.steps_with_bursts(kMeasuredSteps);
  EXPECT_EQ(ring.steps_with_bursts(PartialSteps::kHold), 3 * PartialSteps::kHold / 10);
  EXPECT_FALSE(ring.member(0).threshold());
  EXPECT_EQ(ring.steps_with_bursts(PartialSteps::kWindow), 0);
  ASSERT_TRUE(ring.member(0).threshold());
  EXPECT_NEAR(ring.member(0).threshold()->gain, 0.155, 1e-4);
}

// The bound holds after every step, whatever the members' times are.
TEST(PartialSteps, NeverMoreThanTheRateIsLeftOut) {
  std::int64_t left_out_ever = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 0);
    const double rate = static_cast<double>(1 + rng.below(20)) / 100;
    const int world = 2 + static_cast<int>(rng.below(4));
    PartialRing ring(rate, world);
    std::int64_t left_out = 0;
    for (int i = 1; i <= 1200; ++i) {
      // Later bursts are more frequent than the measured ones.
      const std::uint64_t of = i < 100 ? 20 : 2;
      left_out += ring.step([&](int) { return rng.below(of) == 0 ? milliseconds(60) : kQuickTime; });
      ASSERT_LE(static_cast<double>(left_out), rate * static_cast<double>(i * world * PartialRing::kSamples));
    }
    left_out_ever += left_out;
  }
  EXPECT_GT(left_out_ever, 0);
}

TEST(PartialSteps, NothingIsLeftOutByOneMemberOrOfOnePass) {
  EXPECT_TRUE(PartialSteps(0.1, 1, {4, 4}, 0).possible());
  EXPECT_TRUE(PartialSteps(0.1, 4, {4, 5}, 0).possible());
  EXPECT_FALSE(PartialSteps(0.1, 1, {8}, 0).possible());
  EXPECT_FALSE(PartialSteps(0.1, 4, {4, 4}, 0).possible());
  EXPECT_FALSE(PartialSteps(0.1, 0, {4, 4}, 0).possible());
  EXPECT_FALSE(PartialSteps(0, 1, {4, 4}, 0).possible());
}

// 20 passes are 7 parts of 3 passes, the last one shorter: between them nobody is asked.
TEST(PartialSteps, ManyPassesAreFewParts) {
  PartialSteps many(0.5, 2, {40, 40}, 0);
  for (int i = 0; i < kMeasuredSteps; ++i) {
    for (std::int64_t done = 2; done < 40; done += 2) EXPECT_TRUE(many.goes_on(done, done * kQuickTime));
    many.computed(40 * kQuickTime);
    many.applied(40 * kQuickTime + kRingRest, 0);
  }
  ASSERT_TRUE(many.full());
  const std::span<float> row = many.table().first(PartialSteps::kMostParts + 1);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(row[i], 0.06, 1e-6);
  EXPECT_NEAR(row[6], 0.04, 1e-6);
  EXPECT_EQ(row[7], 0);
  EXPECT_NEAR(row[8], 0.41, 1e-6);
}

}  // namespace
}  // namespace paceline::trainer
