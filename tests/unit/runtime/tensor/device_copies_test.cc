// How batches come to a device, on one that does its work as late as it may.

#include "runtime/tensor/device_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "tests/support/late_queue.h"

namespace paceline::tensor {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class HostMemory final : public DeviceMemory {
 public:
  explicit HostMemory(std::size_t bytes) : memory_(bytes) {}
  std::byte* data() const override { return const_cast<std::byte*>(memory_.data()); }

 private:
  std::vector<std::byte> memory_;
};

class LateDevice final : public Device {
 public:
  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) override {
    ++allocations;
    return std::make_unique<HostMemory>(bytes);
  }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate_staging(std::size_t bytes) override {
    return std::make_unique<HostMemory>(bytes);
  }
  absl::StatusOr<std::unique_ptr<Queue>> open_queue() override {
    auto queue = std::make_unique<LateQueue>();
    opened.push_back(queue.get());
    return queue;
  }
  std::unique_ptr<Lowering> begin(const Schedule&, Precision, Queue*) override {
    PL_CHECK(false, "nothing is lowered in these tests");
    return nullptr;
  }
  absl::Status enter() override { return absl::OkStatus(); }

  int allocations = 0;
  std::vector<LateQueue*> opened;
};

class DeviceCopiesTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 3;

  void make(bool training) {
    const Value x = graph_.input({2});
    graph_.softmax_cross_entropy(graph_.dense("fc", x, 4));
    areas_ = std::make_unique<BatchAreas>(graph_, kRows, training);
    staging_.resize(areas_->bytes());
    batch_ = areas_->view(staging_.data());
    copies_ = *DeviceCopies::make(device_, queue_, *areas_, staging_.data(), 16, training);
  }
  void fill(float value) {
    std::ranges::fill(batch_.inputs, value);
    std::ranges::fill(batch_.labels, static_cast<std::int32_t>(value));
  }
  // What a pass adds: its operators note what they find, and then compute on.
  void add_pass(std::int64_t rows) {
    ASSERT_TRUE(copies_->upload_batch(rows).ok());
    ASSERT_TRUE(copies_->take_batch(rows).ok());
    queue_.add([this] {
      seen_.push_back(copies_->memory().inputs[0]);
      EXPECT_EQ(static_cast<float>(copies_->memory().labels[0]), seen_.back());
      return absl::OkStatus();
    });
    ASSERT_TRUE(copies_->download_result(rows).ok());
    ASSERT_TRUE(copies_->mark_result().ok());
    queue_.add([this] {
      ++backwards_;
      return absl::OkStatus();
    });
  }
  LateQueue& side() { return *device_.opened.at(0); }

  LateDevice device_;
  LateQueue queue_;
  GraphBuilder graph_;
  std::unique_ptr<BatchAreas> areas_;
  std::vector<std::byte> staging_;
  BatchMemory batch_;
  std::unique_ptr<DeviceCopies> copies_;
  std::vector<float> seen_;
  int backwards_ = 0;
};

TEST_F(DeviceCopiesTest, TheNextBatchDoesNotWaitForTheBackwardPass) {
  make(true);
  ASSERT_TRUE(copies_->bind_on_device().ok());
  fill(1);
  add_pass(kRows);
  ASSERT_TRUE(copies_->wait_for_result().ok());
  fill(2);
  add_pass(kRows);
  // All that the side queue has, and what it waits for.
  ASSERT_TRUE(side().set_mark(99).ok());
  ASSERT_TRUE(side().wait_for_mark(99).ok());
  EXPECT_EQ(backwards_, 0);
  fill(3);  // it is there: nobody reads what the host has
  ASSERT_TRUE(copies_->wait_for_result().ok());
  EXPECT_THAT(seen_, ElementsAre(1, 2));
  EXPECT_EQ(backwards_, 1);
}

TEST_F(DeviceCopiesTest, LandedBatchStaysUntilItIsTaken) {
  make(true);
  ASSERT_TRUE(copies_->bind_on_device().ok());
  fill(1);
  add_pass(kRows);
  // The host has its memory back, and nothing of the pass is done.
  ASSERT_TRUE(side().set_mark(99).ok());
  ASSERT_TRUE(side().wait_for_mark(99).ok());
  EXPECT_THAT(seen_, ElementsAre());
  fill(2);
  add_pass(kRows);
  ASSERT_TRUE(side().set_mark(99).ok());
  ASSERT_TRUE(side().wait_for_mark(99).ok());
  EXPECT_THAT(seen_, ElementsAre(1)) << "the second batch landed behind the first pass's forward";
  ASSERT_TRUE(copies_->wait_for_result().ok());
  EXPECT_THAT(seen_, ElementsAre(1, 2));
}

TEST_F(DeviceCopiesTest, AnUnevenBatchMovesItsRowsAlone) {
  make(true);
  ASSERT_TRUE(copies_->bind_on_device().ok());
  fill(1);
  add_pass(kRows);
  ASSERT_TRUE(copies_->wait_for_result().ok());
  fill(2);
  add_pass(1);
  ASSERT_TRUE(copies_->wait_for_result().ok());
  EXPECT_THAT(std::span(copies_->memory().inputs, 2), Each(2));
  EXPECT_THAT(std::span(copies_->memory().inputs + 2, 4), Each(1));
}

TEST_F(DeviceCopiesTest, WithVectorsOfTheHostThereIsNoLanding) {
  make(true);
  std::vector<float> weights(16), gradients(16);
  const int before = device_.allocations;
  copies_->bind(weights, gradients);
  fill(1);
  add_pass(kRows);
  ASSERT_TRUE(copies_->wait_for_result().ok());
  EXPECT_THAT(seen_, ElementsAre(1));
  EXPECT_TRUE(device_.opened.empty());
  EXPECT_EQ(device_.allocations, before);
  EXPECT_EQ(copies_->batch_bytes(), areas_->bytes());

  // And back and forth.
  ASSERT_TRUE(copies_->bind_on_device().ok());
  EXPECT_EQ(copies_->batch_bytes(), areas_->bytes() + areas_->input_bytes());
  fill(2);
  add_pass(kRows);
  ASSERT_TRUE(copies_->wait_for_result().ok());
  copies_->bind(weights, gradients);
  fill(3);
  add_pass(kRows);
  ASSERT_TRUE(copies_->wait_for_result().ok());
  EXPECT_THAT(seen_, ElementsAre(1, 2, 3));
  EXPECT_EQ(device_.opened.size(), 1U);
}

TEST_F(DeviceCopiesTest, VectorsAreGivenBackOnceTheQueueIsDoneWithThem) {
  make(true);
  std::vector<float> weights(16), gradients(16);
  copies_->bind(weights, gradients);
  ASSERT_TRUE(copies_->upload_weights(1).ok());
  EXPECT_EQ(copies_->vector_bytes(), 2 * 16 * sizeof(float));
  bool done = false;
  queue_.add([this, &done] {
    done = copies_->memory().gradients != nullptr;
    return absl::OkStatus();
  });
  ASSERT_TRUE(copies_->release_vectors().ok());
  EXPECT_TRUE(done);
  EXPECT_EQ(copies_->vector_bytes(), 0U);
  EXPECT_EQ(copies_->memory().weights, nullptr);
  copies_->bind(weights, gradients);
  EXPECT_TRUE(*copies_->upload_weights(1)) << "they are others";
}

// Every pass is waited for.
TEST_F(DeviceCopiesTest, ProgramsThatEvaluateHaveNoLanding) {
  make(false);
  ASSERT_TRUE(copies_->bind_on_device().ok());
  EXPECT_TRUE(device_.opened.empty());
  EXPECT_EQ(copies_->batch_bytes(), areas_->bytes());
}

}  // namespace
}  // namespace paceline::tensor
