#include "runtime/trainer/sparse_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/assert_ok.h"
#include "tests/support/click_model.h"

namespace paceline::trainer {
namespace {

using pserver::sparse::RowsPull;
using pserver::sparse::RowsPush;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SparseRows, PulledRowsAreLookedUpAndTheirGradientsLieInTheArena) {
  PL_ASSERT_OK(rows, SparseRows::create(click_shape(), 4, Purpose::kTraining));
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
  const auto rows = SparseRows::create(click_shape(), 4, Purpose::kTraining);
  const std::vector<std::int32_t> tokens = {0, 1, 2};
  EXPECT_EQ(
      (*rows)->pull(tokens, [](std::span<const RowsPull>) { return absl::UnavailableError("gone"); }).code(),
      absl::StatusCode::kUnavailable);
}

// The advice names the field that rules there, and no other.
void expect_field_of(Purpose purpose, const std::string& message) {
  const bool trains = purpose == Purpose::kTraining;
  EXPECT_EQ(message.find("spec.training.globalBatchSize") != std::string::npos, trains) << message;
  EXPECT_EQ(message.find("spec.training.evaluation.batchSize") != std::string::npos, !trains) << message;
}

// Validation says the same where it knows the data: tests/integration/pserver/unit_limits_test.cc.
TEST(SparseRows, SamplesThatMayNeedTooMuchAreRefusedWithAdvice) {
  struct Case {
    model::WideAndDeepShape shape;
    std::int64_t most;  // samples
    const char* one_more;
  };
  const std::vector<std::int64_t> large(4, 1'000'000);
  for (const Case& c : std::vector<Case>{
           {{1, 1, {}}, 1 << 18, "may need up to 262145 rows of one table; allowed: up to 262144"},
           {{3, 1, {{0, 1}}}, 65536, "may need up to 262148 rows of one table; allowed: up to 262144"},
           {{4, 4096, {}, large}, 4095, "may need up to 67125248 floats of rows; allowed: up to 67108864"},
           {{2, 8, {}, {10, 100}},
            1 << 27,
            "may need up to 268435458 values and crosses; allowed: up to 268435456"},
       }) {
    EXPECT_EQ(max_samples_of_pull(c.shape), c.most);
    for (const Purpose purpose : {Purpose::kTraining, Purpose::kEvaluation}) {
      const absl::Status status = SparseRows::create(c.shape, c.most + 1, purpose).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      const std::string message(status.message());
      EXPECT_THAT(message, HasSubstr(c.one_more));
      expect_field_of(purpose, message);
      EXPECT_EQ(message.find("SampleShape::vocabularies") != std::string::npos, c.shape.vocabularies.empty())
          << "what would help, where it is not said";
    }
  }
}

TEST(SparseRows, OfOneSampleThatNeedsTooMuchNoBatchIsSmallEnough) {
  const model::WideAndDeepShape shape{4, 1 << 25, {}, {10, 10, 10, 10}};
  for (const Purpose purpose : {Purpose::kTraining, Purpose::kEvaluation}) {
    const std::string message(SparseRows::create(shape, 1, purpose).status().message());
    EXPECT_THAT(message, HasSubstr("is of 1 sample, which may need up to 134217732 floats of rows"));
    EXPECT_THAT(message, HasSubstr("take fewer fields, or narrower tables"));
    EXPECT_THAT(message, Not(HasSubstr("atchSize")));
  }
}

TEST(SparseRows, FieldsOfFewValuesNeedFewRowsHoweverManySamplesThereAre) {
  const model::WideAndDeepShape shape{2, 4, {}, {3, 1000}};
  constexpr std::int64_t kSamples = 1 << 18;  // twice as many lookups as there may be rows
  PL_ASSERT_OK(rows, SparseRows::create(shape, kSamples, Purpose::kTraining));
  EXPECT_EQ((*rows)->batch().max_floats(model::kWideTable), 1003u);
  EXPECT_EQ((*rows)->batch().max_floats(model::kDeepTable), 4012u);
  std::vector<std::int32_t> tokens(2 * kSamples);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(i % 2 == 0 ? i % 3 : i % 1000);
  EXPECT_TRUE((*rows)->pull(tokens, [](std::span<const RowsPull>) { return absl::OkStatus(); }).ok());
}

TEST(SparseRows, AnEvaluationHasNoGradientsAndTakesNoMemoryForThem) {
  const model::WideAndDeepShape shape{4, 1024, {}};
  const std::int64_t before = bytes_of_this_thread();
  PL_ASSERT_OK(rows, SparseRows::create(shape, 1000, Purpose::kEvaluation));
  const std::int64_t taken = bytes_of_this_thread() - before;
  EXPECT_GE(taken, 4 * 1000 * 1025 * 4) << "rows";
  EXPECT_LT(taken, 6 * 1000 * 1025 * 4) << "and not as much again";
}

TEST(SparseRows, AMissOfMemoryIsToldWithHowMuchAndForWhat) {
  const model::WideAndDeepShape shape{4, 1024, {}};
  for (const Purpose purpose : {Purpose::kTraining, Purpose::kEvaluation}) {
    const AllocationLimit limit(std::size_t{8} << 20);
    const absl::Status status = SparseRows::create(shape, 1000, purpose).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(str_cat("no memory for the ", model::WideAndDeepBatch::bytes(shape, 1000),
                                           " bytes")));
    EXPECT_THAT(message, HasSubstr("of 1000 samples"));
    expect_field_of(purpose, message);
  }
}

}  // namespace
}  // namespace paceline::trainer
