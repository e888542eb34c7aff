#include "runtime/trainer/auc_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/status.h"
#include "tests/support/assert_ok.h"
#include "tests/support/click_model.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSamples = 400;

// Clicks of which all before `first` have the label 0, and the others 1.
class LateClicks final : public data::Dataset {
 public:
  explicit LateClicks(std::int64_t first) : first_(first) {}
  const data::SampleShape& shape() const override { return samples_.shape(); }
  std::int64_t size() const override { return samples_.size(); }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t seed,
                     const data::BatchView& batch) const override {
    read_ += static_cast<std::int64_t>(indices.size());
    PL_RETURN_IF_ERROR(samples_.fetch(indices, seed, batch));
    for (std::size_t i = 0; i < indices.size(); ++i) batch.labels[i] = indices[i] < first_ ? 0 : 1;
    return absl::OkStatus();
  }
  std::int64_t read() const { return read_; }

 private:
  const std::int64_t first_;
  const ClickDataset samples_{kSamples};
  mutable std::int64_t read_ = 0;
};

struct Trial {
  explicit Trial(std::int64_t first) : late(std::make_shared<LateClicks>(first)) {
    data.test = late;
    auto made = Evaluator::create(late, std::make_unique<ClickProgram>(16), click_shape());
    EXPECT_TRUE(made.ok()) << made.status();
    evaluator = *std::move(made);
  }
  std::shared_ptr<LateClicks> late;
  data::Datasets data;
  std::unique_ptr<Evaluator> evaluator;
};

TEST(AucTarget, NothingIsSaidOfATargetWithinReach) {
  Trial trial(20);
  PL_ASSERT_OK(checked, check_auc_target(0.99, *trial.evaluator, trial.data, yes));
  EXPECT_EQ(*checked, "") << "nobody knows the best";
  EXPECT_EQ(trial.late->read(), 32) << "no more labels than tell";
  trial.data.best_auc = [] { return data::ExpectedAuc{0.8, 0.001, 0.5}; };
  EXPECT_EQ(*check_auc_target(0.8, *trial.evaluator, trial.data, yes), "");
}

TEST(AucTarget, AboveTheBestIsRefusedOrWhereChanceMayHelpWarnedOf) {
  Trial trial(20);
  trial.data.best_auc = [] { return data::ExpectedAuc{0.8, 0.001, 0.5}; };
  PL_ASSERT_OK(near, check_auc_target(0.82, *trial.evaluator, trial.data, yes));
  EXPECT_THAT(*near, HasSubstr("0.82 is above 0.8000"));
  const auto far = check_auc_target(0.95, *trial.evaluator, trial.data, yes);
  EXPECT_EQ(far.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(far.status().message()), HasSubstr("target.auc 0.95 is above 0.8000, the best"));
  EXPECT_THAT(std::string(far.status().message()), HasSubstr("400 held-out samples"));
}

TEST(AucTarget, HeldOutSamplesOfOneLabelHaveNoAuc) {
  for (const std::int64_t first : {std::int64_t{0}, kSamples}) {
    Trial trial(first);
    const auto checked = check_auc_target(0.6, *trial.evaluator, trial.data, yes);
    EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(checked.status().message()),
                HasSubstr("400 held-out samples have one label only"));
  }
  Trial last(kSamples - 1);
  EXPECT_TRUE(check_auc_target(0.6, *last.evaluator, last.data, yes).ok());
}

TEST(AucTarget, AModelWithoutScoresHasNoAuc) {
  data::Datasets data;
  data.test = std::make_shared<StepDataset>(10);
  PL_ASSERT_OK(evaluator, Evaluator::create(data.test, std::make_unique<StepProgram>(4)));
  const auto checked = check_auc_target(0.6, **evaluator, data, yes);
  EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(checked.status().message()), HasSubstr("no single score"));
}

TEST(AucTarget, ReadingLabelsEndsWhenItShall) {
  Trial trial(kSamples);
  int asked = 0;
  const auto no = [&]() -> absl::Status {
    return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("asked to stop");
  };
  EXPECT_EQ(check_auc_target(0.6, *trial.evaluator, trial.data, no).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(trial.late->read(), 32);
}

}  // namespace
}  // namespace paceline::trainer
