#include "runtime/data/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "base/text.h"

namespace paceline::data {
namespace {

constexpr Duration kSoon = std::chrono::seconds(30);

// Sample i is {i, i + 0.5, seed}, its label i.
class CountingDataset final : public Dataset {
 public:
  CountingDataset() { shape_.dims = {3}; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return 1 << 20; }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t seed,
                     const BatchView& batch) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == fail_at) return absl::DataLossError("sample is bad");
      const auto value = static_cast<float>(indices[i]);
      batch.inputs[3 * i] = value;
      batch.inputs[3 * i + 1] = value + 0.5f;
      batch.inputs[3 * i + 2] = static_cast<float>(seed);
      batch.labels[i] = static_cast<std::int32_t>(indices[i]);
    }
    ++fetches;
    if (block != nullptr) block->wait();
    return absl::OkStatus();
  }
  std::int64_t fail_at = -1;
  mutable std::atomic<int> fetches{0};
  std::latch* block = nullptr;

 private:
  SampleShape shape_;
};

std::uint64_t plan(std::int64_t step, std::vector<std::int64_t>& indices) {
  indices.clear();
  for (std::int64_t i = 0; i < 1 + step % 4; ++i) indices.push_back(step * 10 + i);
  return static_cast<std::uint64_t>(step);
}

TEST(PrefetcherTest, BatchesAreTheSameAtEveryDepth) {
  for (const int depth : {0, 1, 2, 7}) {
    for (const std::int64_t inline_below : {std::int64_t{0}, kInlineBatchBytes}) {
      Prefetcher input(std::make_shared<CountingDataset>(), plan,
                       {.first_step = 5,
                        .end_step = 60,
                        .max_rows = 4,
                        .depth = depth,
                        .inline_below_bytes = inline_below});
      EXPECT_EQ(input.prepares_inline(), depth == 0 || inline_below > 0);
      for (std::int64_t step = 5; step < 60; ++step) {
        const auto batch = input.next(kSoon);
        ASSERT_TRUE(batch.ok()) << batch.status();
        ASSERT_EQ(batch->step, step);
        ASSERT_EQ(batch->rows(), 1 + step % 4);
        for (std::size_t i = 0; i < batch->indices.size(); ++i) {
          const std::int64_t index = step * 10 + static_cast<std::int64_t>(i);
          EXPECT_EQ(batch->indices[i], index);
          EXPECT_EQ(batch->labels[i], index);
          EXPECT_EQ(batch->inputs[3 * i + 1], static_cast<float>(index) + 0.5f);
          EXPECT_EQ(batch->inputs[3 * i + 2], static_cast<float>(step));
        }
      }
      EXPECT_EQ(input.next(kSoon).status().code(), absl::StatusCode::kOutOfRange);
    }
  }
}

TEST(PrefetcherTest, PreparesAtMostDepthAhead) {
  auto dataset = std::make_shared<CountingDataset>();
  Prefetcher input(dataset, plan, {.end_step = 100, .max_rows = 4, .depth = 2, .inline_below_bytes = 0});
  for (int step = 0; step < 50; ++step) {
    ASSERT_TRUE(input.next(kSoon).ok());
    EXPECT_LE(dataset->fetches, step + 3);
  }
}

TEST(PrefetcherTest, StopWakesAWaitingConsumer) {
  std::latch block(1);
  auto dataset = std::make_shared<CountingDataset>();
  dataset->block = &block;
  Prefetcher input(dataset, plan, {.end_step = 100, .max_rows = 4, .depth = 2, .inline_below_bytes = 0});
  EXPECT_EQ(input.next(std::chrono::milliseconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
  std::jthread stopper([&] { input.stop(); });
  EXPECT_EQ(input.next(kSoon).status().code(), absl::StatusCode::kCancelled);
  block.count_down();
}

TEST(PrefetcherTest, ErrorsComeAtTheirStepAndNameIt) {
  for (const int depth : {0, 3}) {
    auto dataset = std::make_shared<CountingDataset>();
    dataset->fail_at = 20;
    Prefetcher input(dataset, plan,
                     {.end_step = 100, .max_rows = 4, .depth = depth, .inline_below_bytes = 0});
    EXPECT_TRUE(input.next(kSoon).ok());
    EXPECT_TRUE(input.next(kSoon).ok());
    for (int again = 0; again < 2; ++again) {
      const absl::Status status = input.next(kSoon).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("step 2: sample is bad"));
    }
  }
}

TEST(PrefetcherTest, DestructionDoesNotWaitForTheConsumer) {
  for (int i = 0; i < 50; ++i) {
    Prefetcher input(std::make_shared<CountingDataset>(), plan,
                     {.end_step = 1000, .max_rows = 4, .depth = 4, .inline_below_bytes = 0});
    if (i % 2 == 0) {
      EXPECT_TRUE(input.next(kSoon).ok());
    }
  }
}

}  // namespace
}  // namespace paceline::data
