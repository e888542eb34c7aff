// How long a device is at a step: on one that does its work as late as it may, and whose clock counts pieces
// of work.

#include "runtime/tensor/device_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/late_queue.h"

namespace paceline::tensor {
namespace {

using std::chrono::milliseconds;

class DeviceTimerTest : public ::testing::Test {
 protected:
  DeviceTimerTest() { timer().collect_into(sums_); }
  DeviceTimer& timer() { return queue_.timer(); }
  DeviceTimeSums sums() { return *sums_->lock(); }

  void work(int pieces) {
    for (int i = 0; i < pieces; ++i) queue_.add([] { return absl::OkStatus(); });
  }
  void pass(int pieces, bool first = true) {
    ASSERT_TRUE(timer().begin_pass(first).ok());
    work(pieces);
    ASSERT_TRUE(timer().end().ok());
  }
  void update(int pieces) {
    ASSERT_TRUE(timer().begin_update().ok());
    work(pieces);
    ASSERT_TRUE(timer().end().ok());
  }
  void let_it_work() {
    ASSERT_TRUE(queue_.set_mark(0).ok());
    ASSERT_TRUE(queue_.wait_for_mark(0).ok());
  }
  // As the next step does: what is done is read when something begins. That is in no sum yet.
  void look() { pass(0); }

  LateQueue queue_;
  const std::shared_ptr<DeviceTimer::Sums> sums_ = std::make_shared<DeviceTimer::Sums>();
};

TEST_F(DeviceTimerTest, PassesAndUpdateOfAStepAreAddedUpAndWhatLiesBetweenIsNot) {
  work(100);
  pass(7);
  work(1000);
  pass(5, false);
  work(1000);
  update(3);
  work(1000);
  let_it_work();
  EXPECT_EQ(sums(), DeviceTimeSums()) << "nobody has looked";
  look();
  EXPECT_EQ(sums(), (DeviceTimeSums{1, {milliseconds(12), milliseconds(3)}, 0}));
  EXPECT_EQ(timer().last(), (DeviceTimes{milliseconds(12), milliseconds(3)}));
  update(1);
  let_it_work();
  pass(6);
  update(2);
  let_it_work();
  look();
  EXPECT_EQ(sums(), (DeviceTimeSums{3, {milliseconds(18), milliseconds(6)}, 0}));
  EXPECT_EQ(timer().last(), (DeviceTimes{milliseconds(6), milliseconds(2)}));
}

TEST_F(DeviceTimerTest, ReadingWaitsForNoWork) {
  pass(7);
  update(3);
  look();
  EXPECT_EQ(sums(), DeviceTimeSums());
  let_it_work();
  pass(2, false);
  EXPECT_EQ(sums().steps, 1);
}

TEST_F(DeviceTimerTest, WithoutUpdatesAStepEndsWhereTheNextBegins) {
  for (const int pieces : {4, 5, 6}) pass(pieces);
  pass(1, false);
  let_it_work();
  look();
  EXPECT_EQ(sums(), (DeviceTimeSums{2, {milliseconds(9), milliseconds(0)}, 0})) << "the third may go on";
  let_it_work();
  look();
  EXPECT_EQ(sums(), (DeviceTimeSums{3, {milliseconds(16), milliseconds(0)}, 0}));
}

TEST_F(DeviceTimerTest, WithoutSamplesAStepIsItsUpdate) {
  for (const int pieces : {4, 5}) update(pieces);
  let_it_work();
  look();
  EXPECT_EQ(sums(), (DeviceTimeSums{2, {milliseconds(0), milliseconds(9)}, 0}));
}

TEST_F(DeviceTimerTest, PlacesComeRoundAgain) {
  constexpr auto kSteps = static_cast<std::int64_t>(3 * DeviceTimer::kIntervals + 1);
  for (std::int64_t i = 0; i < kSteps; ++i) {
    pass(2);
    update(1);
    let_it_work();
  }
  look();
  EXPECT_EQ(sums(), (DeviceTimeSums{kSteps, {kSteps * milliseconds(2), kSteps * milliseconds(1)}, 0}));
}

TEST_F(DeviceTimerTest, StepsThatAreNotDoneWhenTheirPlacesAreNeededAreNotMeasured) {
  constexpr int kSteps = static_cast<int>(DeviceTimer::kIntervals) / 2;
  for (int i = 0; i < kSteps; ++i) {
    pass(2);
    update(1);
  }
  EXPECT_EQ(sums(), DeviceTimeSums()) << "all have a place";
  pass(2);  // in that of the first pass
  update(1);
  let_it_work();
  look();
  EXPECT_EQ(sums(), (DeviceTimeSums{kSteps, {kSteps * milliseconds(2), kSteps * milliseconds(1)}, 1}));
}

TEST_F(DeviceTimerTest, AStepOfWhichAPassIsMissingIsNotMeasured) {
  pass(7);
  for (std::size_t i = 0; i < DeviceTimer::kIntervals; ++i)
    pass(1, false);  // the last one in the first's place
  let_it_work();
  update(1);
  let_it_work();
  pass(2);
  update(1);
  let_it_work();
  look();
  EXPECT_EQ(sums(), (DeviceTimeSums{1, {milliseconds(2), milliseconds(1)}, 1}));
  EXPECT_EQ(timer().last(), (DeviceTimes{milliseconds(2), milliseconds(1)}));
}

TEST_F(DeviceTimerTest, FailedPassIsForgotten) {
  ASSERT_TRUE(timer().begin_pass(true).ok());
  work(50);
  pass(2);
  update(1);
  let_it_work();
  look();
  EXPECT_EQ(sums(), (DeviceTimeSums{1, {milliseconds(2), milliseconds(1)}, 0}));
}

// Such as one of processors, where queues are at all.
class NoClock final : public Queue {
 public:
  absl::Status upload(void*, std::span<const std::byte>) override { return absl::OkStatus(); }
  absl::Status download(std::span<std::byte>, const void*) override { return absl::OkStatus(); }
  absl::Status copy(void*, const void*, std::size_t) override { return absl::OkStatus(); }
  absl::Status clear(void*, std::size_t) override { return absl::OkStatus(); }
  absl::Status set_mark(std::size_t) override { return absl::OkStatus(); }
  absl::Status wait_for_mark(std::size_t) override { return absl::OkStatus(); }
  absl::Status follow(const Queue&, std::size_t) override { return absl::OkStatus(); }
  absl::Status set_time_mark(std::size_t) override { return absl::InternalError("it has none"); }
};

TEST(DeviceTimer, WithoutAClockNothingIsMeasured) {
  NoClock queue;
  const auto sums = std::make_shared<DeviceTimer::Sums>();
  queue.timer().collect_into(sums);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue.timer().begin_pass(true).ok());
    ASSERT_TRUE(queue.timer().end().ok());
    ASSERT_TRUE(queue.timer().begin_update().ok());
    ASSERT_TRUE(queue.timer().end().ok());
  }
  EXPECT_EQ(*sums->lock(), DeviceTimeSums());
}

}  // namespace
}  // namespace paceline::tensor
