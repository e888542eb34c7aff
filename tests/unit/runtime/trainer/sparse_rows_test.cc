#include "runtime/trainer/sparse_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/support/click_model.h"

namespace paceline::trainer {
namespace {

using pserver::sparse::RowsPull;
using pserver::sparse::RowsPush;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(SparseRows, WhatIsPulledIsLookedUpAndItsGradientsLieInTheArena) {
  const auto rows = SparseRows::create(paceline::testing::click_shape(), 4);
  ASSERT_TRUE(rows.ok());
  const auto arena = transport::Arena::create(std::size_t{1} << 20);
  ASSERT_TRUE(arena.ok() && (*rows)->place_gradients(**arena).ok());
  const std::vector<std::int32_t> tokens = {0, 1, 2, 0, 1, 3};  // two samples
  const auto fill = [](std::span<const RowsPull> pulls) {
    EXPECT_EQ(pulls.size(), 2u);
    EXPECT_EQ(pulls[0].ids.size(), 5u) << "four values and a cross, each once";
    EXPECT_EQ(pulls[0].rows.size(), 5u);
    EXPECT_EQ(pulls[1].ids.size(), 4u);
    EXPECT_EQ(pulls[1].rows.size(), 8u);
    for (const RowsPull& pull : pulls) std::fill(pull.rows.begin(), pull.rows.end(), 0.25F);
    return absl::OkStatus();
  };
  ASSERT_TRUE((*rows)->pull(tokens, fill).ok());

  std::vector<float> inputs(12), offsets(2), input_gradients(12, 1.0F), offset_gradients(2, 2.0F);
  const tensor::BatchMemory memory{inputs, {}, {}, offsets, input_gradients, offset_gradients, {}};
  (*rows)->batch().gather(0, 2, memory);
  EXPECT_THAT(inputs, Each(0.25F));
  EXPECT_THAT(offsets, Each(1.0F)) << "three values and a cross";
  (*rows)->batch().scatter(0, 2, memory);
  const std::span<const RowsPush> pushes = (*rows)->pushes();
  ASSERT_EQ(pushes.size(), 2u);
  float sum = 0;
  for (const RowsPush& push : pushes) {
    EXPECT_TRUE((*arena)->contains(push.gradient.data(), push.gradient.size_bytes()));
    EXPECT_TRUE(std::is_sorted(push.ids.begin(), push.ids.end()));
    sum += std::accumulate(push.gradient.begin(), push.gradient.end(), 0.0F);
  }
  EXPECT_EQ(sum, 2 * (4 * 2.0F) + 2 * 6 * 1.0F) << "of both samples' lookups";

  ASSERT_TRUE((*rows)->pull(tokens, fill).ok());
  for (const RowsPush& push : (*rows)->pushes()) EXPECT_THAT(push.gradient, Each(0.0F)) << "a new unit";
}

TEST(SparseRows, AFailedPullIsItsError) {
  const auto rows = SparseRows::create(paceline::testing::click_shape(), 4);
  const std::vector<std::int32_t> tokens = {0, 1, 2};
  EXPECT_EQ(
      (*rows)->pull(tokens, [](std::span<const RowsPull>) { return absl::UnavailableError("gone"); }).code(),
      absl::StatusCode::kUnavailable);
}

TEST(SparseRows, ABatchOfTooManyDifferentRowsIsRefusedWithAdvice) {
  const model::WideAndDeepShape shape{1, 1, {}};
  constexpr std::int64_t kMost = std::int64_t{1} << 18;
  EXPECT_EQ(max_samples_of_pull(shape), kMost);
  const auto rows = SparseRows::create(shape, 2 * kMost);
  ASSERT_TRUE(rows.ok());
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(2 * kMost));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i % kMost);
  int pulled = 0;
  const auto count = [&](std::span<const RowsPull>) {
    ++pulled;
    return absl::OkStatus();
  };
  EXPECT_TRUE((*rows)->pull(tokens, count).ok()) << "as many different ones as there may be";
  tokens[0] = kMost;
  const absl::Status status = (*rows)->pull(tokens, count);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("262145 rows of a table"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("globalBatchSize"));
  EXPECT_EQ(pulled, 1);
}

TEST(SparseRows, ABatchBeyondAllMemoryIsRefused) {
  const model::WideAndDeepShape shape{1000, 4096, {}};
  EXPECT_EQ(max_samples_of_pull(shape), 16);
  const absl::Status status = SparseRows::create(shape, 1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("of 1000 samples; allowed, with this model: at most 262"));
}

}  // namespace
}  // namespace paceline::trainer
