#include "runtime/trainer/open_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/status.h"
#include "runtime/tensor/cpu/cpu_device.h"
#include "tests/support/click_model.h"

namespace paceline::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A user's click log, of whose samples one is wrong.
class OwnClicks final : public data::Dataset {
 public:
  OwnClicks(std::int32_t value, std::int32_t label, std::vector<std::int64_t> vocabularies)
      : value_(value), label_(label), shape_(samples_.shape()) {
    shape_.vocabularies = std::move(vocabularies);
  }
  const data::SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return samples_.size(); }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t seed,
                     const data::BatchView& batch) const override {
    PL_RETURN_IF_ERROR(samples_.fetch(indices, seed, batch));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != 7) continue;
      batch.tokens[i * 3 + 1] = value_;
      batch.labels[i] = label_;
    }
    return absl::OkStatus();
  }

 private:
  const std::int32_t value_, label_;
  const ClickDataset samples_{20};
  data::SampleShape shape_;
};

absl::StatusOr<Workload> open(const data::Datasets& sets, double test_fraction = 0,
                              v1::TrainingSpec spec = click_spec(10, 4, 1, 1), const Host& host = {}) {
  Registry registry;
  registry.add_dataset("own", [sets](const auto&, std::uint64_t) { return sets; });
  spec.mutable_data()->set_format(v1::DataSpec::CUSTOM);
  spec.mutable_data()->mutable_custom()->set_name("own");
  spec.mutable_data()->set_test_fraction(test_fraction);
  return make_open_workload(std::move(registry), {tensor::make_cpu_device({})}, host)(spec);
}

TEST(OpenWorkload, AClickThatCanNotBeMeantIsAnErrorOfItsSample) {
  struct Case {
    std::int32_t value, label;
    const char* said;
  };
  for (const Case& c : {Case{-3, 1, "the training set of 'own': sample 7, field 1 is -3; allowed: 0 to "},
                        Case{3, 2, "the training set of 'own': sample 7, label 0 is 2; allowed: 0 to 1"}}) {
    const auto own = std::make_shared<OwnClicks>(c.value, c.label, std::vector<std::int64_t>{});
    const auto workload = open({own, nullptr}, 0.5);
    ASSERT_TRUE(workload.ok()) << workload.status();
    std::vector<std::int32_t> tokens(30), labels(10);
    std::vector<std::int64_t> indices = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    absl::Status status = workload->data.train->fetch(indices, 0, {{}, tokens, labels});
    if (status.ok()) status = workload->data.test->fetch(indices, 0, {{}, tokens, labels});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << "whichever part sample 7 is in";
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.said));
  }
}

TEST(OpenWorkload, ModelKnowsTheFieldsOfBothSets) {
  const auto few = std::make_shared<OwnClicks>(0, 0, std::vector<std::int64_t>{5, 5, 9});
  const auto many = std::make_shared<OwnClicks>(0, 0, std::vector<std::int64_t>{6, 5, 5});
  const auto silent = std::make_shared<OwnClicks>(0, 0, std::vector<std::int64_t>{});
  EXPECT_THAT(open({few, nullptr})->sparse->vocabularies, ElementsAre(5, 5, 9));
  EXPECT_THAT(open({few, many})->sparse->vocabularies, ElementsAre(6, 5, 9));
  EXPECT_THAT(open({few, silent})->sparse->vocabularies, ElementsAre());
  EXPECT_THAT(open({silent, many})->sparse->vocabularies, ElementsAre());
}

// 1.2 million weights: 9 MiB with the gradient.
TEST(OpenWorkload, MembersOfOneMachineShareItsMemory) {
  v1::TrainingSpec spec = click_spec(10, 4, 1, 1);
  for (int i = 0; i < 2; ++i) spec.mutable_model()->mutable_wide_and_deep()->add_hidden(1100);
  const data::Datasets clicks{std::make_shared<OwnClicks>(0, 0, std::vector<std::int64_t>{}), nullptr};
  const auto code = [&](const Host& host) { return open(clicks, 0.5, spec, host).status().code(); };
  constexpr int kMib = 80;
  EXPECT_EQ(code({.free_mib_at_begin = kMib, .members = 2}), absl::StatusCode::kOk);
  EXPECT_EQ(code({.free_mib_at_begin = kMib, .members = 10}), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code({.members = 10}), absl::StatusCode::kOk) << "nobody knows what was free";
  // 10 of 9 MiB: room for the weights' own alone, without what passes take.
  EXPECT_EQ(code({.free_mib_at_begin = 100, .members = 10}), absl::StatusCode::kResourceExhausted);
}

class Count final : public tensor::OperationObserver {
 public:
  void begin() override {}
  void end(std::string_view, std::string_view) override { ++operations_; }
  int operations() const { return operations_; }

 private:
  int operations_ = 0;
};

TEST(OpenWorkload, ActivationsAreComputedAgainWhereTheJobSaysSo) {
  const auto operations = [](bool recompute, Purpose purpose) {
    v1::TrainingSpec spec = click_spec(10, 4, 1, 1);
    for (int i = 0; i < 9; ++i) spec.mutable_model()->mutable_wide_and_deep()->add_hidden(16);
    spec.set_recompute_activations(recompute);
    const auto clicks = std::make_shared<OwnClicks>(0, 0, std::vector<std::int64_t>{});
    const auto workload = open({clicks, nullptr}, 0, spec);
    EXPECT_TRUE(workload.ok()) << workload.status();
    const auto program = workload->compile(purpose, 8, {});
    EXPECT_TRUE(program.ok()) << program.status();
    std::vector<float> weights((*program)->parameters().elements), gradients(weights.size());
    (*program)->bind(weights, gradients);
    Count count;
    (*program)->observe(&count);
    EXPECT_TRUE((*program)->forward(8).ok());
    if (purpose == Purpose::kTraining) {
      EXPECT_TRUE((*program)->backward(1, false, nullptr).ok());
    }
    (*program)->observe(nullptr);
    return count.operations();
  };
  EXPECT_GT(operations(true, Purpose::kTraining), operations(false, Purpose::kTraining));
  EXPECT_EQ(operations(true, Purpose::kEvaluation), operations(false, Purpose::kEvaluation));
}

}  // namespace
}  // namespace paceline::trainer
