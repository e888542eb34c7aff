#include "runtime/trainer/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "tests/support/click_model.h"

namespace paceline::trainer {
namespace {

TEST(Evaluator, MoreHeldOutSamplesThanMemoryCanRankAreRefusedWithTheFieldsToChange) {
  const auto samples = std::make_shared<ClickDataset>(std::numeric_limits<std::int64_t>::max());
  const auto evaluator = Evaluator::create(samples, std::make_unique<ClickProgram>(8), click_shape());
  EXPECT_EQ(evaluator.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(evaluator.status().message()),
      ::testing::AllOf(::testing::HasSubstr("9223372036854775807 held-out samples"),
                       ::testing::HasSubstr("8 bytes each"), ::testing::HasSubstr("data.testFraction"),
                       ::testing::HasSubstr("data.clicks.samples")));
}

}  // namespace
}  // namespace paceline::trainer
