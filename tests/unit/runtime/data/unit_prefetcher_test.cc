#include "runtime/data/unit_prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "base/rng.h"
#include "base/text.h"

namespace paceline::data {
namespace {

constexpr Duration kSoon = std::chrono::seconds(30);

// Sample i is {i}, its label i.
class CountingDataset final : public Dataset {
 public:
  CountingDataset() { shape_.dims = {1}; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return 1 << 20; }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t,
                     const BatchView& batch) const override {
    if (indices[0] == fail_at) return absl::DataLossError("sample is bad");
    for (std::size_t i = 0; i < indices.size(); ++i) {
      batch.inputs[i] = static_cast<float>(indices[i]);
      batch.labels[i] = static_cast<std::int32_t>(indices[i]);
    }
    ++fetches;
    if (indices[0] == block_at) block->wait();
    return absl::OkStatus();
  }
  std::int64_t fail_at = -1, block_at = -1;
  mutable std::atomic<int> fetches{0};
  std::latch* block = nullptr;

 private:
  SampleShape shape_;
};

std::uint64_t plan(std::int64_t unit, std::vector<std::int64_t>& indices) {
  indices = {unit * 10, unit * 10 + 1};
  return 0;
}

UnitPrefetcherOptions always_ahead() {
  return {.max_rows = 2, .inline_below_bytes = 0};
}

void expect_unit(const absl::StatusOr<Batch>& batch, std::int64_t unit) {
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->step, unit);
  EXPECT_THAT(batch->inputs,
              ::testing::ElementsAre(static_cast<float>(unit * 10), static_cast<float>(unit * 10 + 1)));
  EXPECT_EQ(batch->labels[1], static_cast<std::int32_t>(unit * 10 + 1));
}

TEST(UnitPrefetcher, TakenUnitIsTheOneAskedForWhateverWasExpected) {
  const std::uint64_t seed = 20;
  SCOPED_TRACE(str_cat("seed ", seed));
  Rng rng(seed, 1);
  UnitPrefetcher input(std::make_shared<CountingDataset>(), plan, always_ahead());
  std::int64_t unit = 0;
  for (int i = 0; i < 3000; ++i) {
    expect_unit(input.take(unit, kSoon), unit);
    const auto next = static_cast<std::int64_t>(rng.below(4));
    if (rng.below(4) > 0) input.expect(next);
    if (rng.below(4) == 0) input.expect(static_cast<std::int64_t>(rng.below(4)));
    unit = rng.below(3) > 0 ? next : static_cast<std::int64_t>(rng.below(4));
  }
}

// The thread prepares it before it is taken: with an input that blocks until the taken one is done with, a
// prefetcher that prepares in take() would end at the time limit.
TEST(UnitPrefetcher, AnExpectedUnitIsPreparedAhead) {
  auto dataset = std::make_shared<CountingDataset>();
  std::latch block(1);
  dataset->block = &block;
  dataset->block_at = 70;
  UnitPrefetcher input(dataset, plan, always_ahead());
  expect_unit(input.take(3, kSoon), 3);
  input.expect(7);
  while (dataset->fetches < 2) std::this_thread::yield();
  EXPECT_EQ(input.take(7, std::chrono::milliseconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
  expect_unit(input.take(5, kSoon), 5);  // another one meanwhile
  block.count_down();
  expect_unit(input.take(7, kSoon), 7);
  EXPECT_EQ(input.hits(), 1);
}

TEST(UnitPrefetcher, ErrorsAreTheUnitsOwn) {
  auto dataset = std::make_shared<CountingDataset>();
  dataset->fail_at = 20;
  UnitPrefetcher input(dataset, plan, always_ahead());
  input.expect(2);
  const auto failed = input.take(2, kSoon);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(failed.status().message()), ::testing::HasSubstr("unit 2"));
  expect_unit(input.take(4, kSoon), 4);
}

TEST(UnitPrefetcher, StopEndsTheWait) {
  auto dataset = std::make_shared<CountingDataset>();
  std::latch block(1);
  dataset->block = &block;
  dataset->block_at = 70;
  UnitPrefetcher input(dataset, plan, always_ahead());
  input.expect(7);
  while (dataset->fetches < 1) std::this_thread::yield();
  std::jthread stopper([&] { input.stop(); });
  EXPECT_EQ(input.take(7, kSoon).status().code(), absl::StatusCode::kCancelled);
  block.count_down();
}

TEST(UnitPrefetcher, SmallBatchesNeedNoThread) {
  UnitPrefetcher input(std::make_shared<CountingDataset>(), plan, {.max_rows = 2});
  EXPECT_TRUE(input.prepares_inline());
  input.expect(1);
  expect_unit(input.take(1, kSoon), 1);
  UnitPrefetcher told(std::make_shared<CountingDataset>(), plan,
                      {.max_rows = 2, .ahead = false, .inline_below_bytes = 0});
  EXPECT_TRUE(told.prepares_inline());
}

}  // namespace
}  // namespace paceline::data
