#include "runtime/trainer/not_finite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Named final : public data::Dataset {
 public:
  explicit Named(data::InputKind kind) { shape_.kind = kind, shape_.dims = {2}; }
  const data::SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return 100; }
  absl::Status fetch(std::span<const std::int64_t>, std::uint64_t, const data::BatchView&) const override {
    return absl::OkStatus();
  }

 private:
  data::SampleShape shape_;
};

TEST(NotFinite, PointsAtTheDataBeforeTheFirstUpdate) {
  const std::vector<std::int64_t> samples = {7, 50};
  const std::vector<float> inputs = {1, 2, -3e30F, 4};
  const data::Batch numbers{.indices = samples, .inputs = inputs};
  const data::Batch none;
  const Named floats(data::InputKind::kFloats), tokens(data::InputKind::kTokens);
  const auto said = [&](bool updated, const data::Dataset& train, const data::Batch& batch) {
    const absl::Status status = not_finite("step 3: the loss", NAN, updated, train, batch);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("step 3: the loss is nan"));
    return std::string(status.message());
  };
  EXPECT_THAT(said(false, floats, numbers), HasSubstr("-3e+30 (sample 50, feature 0)"));
  EXPECT_THAT(said(true, floats, numbers), HasSubstr("training has diverged; lower optimizer.learningRate"));
  for (const auto& text : {said(false, floats, none), said(false, tokens, none)}) {
    EXPECT_THAT(text, HasSubstr("before any update"));
    EXPECT_THAT(text, Not(HasSubstr("largest")));
  }
}

}  // namespace
}  // namespace paceline::trainer
