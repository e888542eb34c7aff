#pragma once

// A model and data whose gradients are small integers, so that sums are exact in any order: one worker and
// many must agree to the bit.
//
// The model: score = sum of w[j] * x[j]; loss = |score - label|, whose gradient is x or -x. Steps of a power
// of two keep the weights exact. Samples: x[j] in {-2..2}, a label in {-8..8}, both from a hash of the index.

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/program.h"
#include "runtime/trainer/workload.h"

namespace paceline::testing {

inline constexpr std::int64_t kStepModelWidth = 40;

class StepDataset final : public data::Dataset {
 public:
  explicit StepDataset(std::int64_t size) : size_(size) { shape_.dims = {kStepModelWidth}; }
  const data::SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return size_; }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t,
                     const data::BatchView& batch) const override {
    std::size_t at = 0;
    for (std::size_t row = 0; row < indices.size(); ++row) {
      Rng rng(static_cast<std::uint64_t>(indices[row]), 7);
      for (std::int64_t j = 0; j < kStepModelWidth; ++j)
        batch.inputs[at++] = static_cast<float>(rng.below(5)) - 2;
      batch.labels[row] = static_cast<std::int32_t>(rng.below(17)) - 8;
    }
    return absl::OkStatus();
  }

 private:
  std::int64_t size_;
  data::SampleShape shape_;
};

class StepProgram final : public tensor::Program {
 public:
  explicit StepProgram(std::int64_t max_rows)
      : inputs_(static_cast<std::size_t>(max_rows * kStepModelWidth)),
        labels_(static_cast<std::size_t>(max_rows)),
        signs_(static_cast<std::size_t>(max_rows)),
        max_rows_(max_rows) {
    layout_.parameters = {{"first", {24}, 0, 24, true}, {"second", {16}, 32, 16, false}};
    layout_.elements = 48;
    layout_.trained_elements = 40;
  }
  const tensor::ParameterLayout& parameters() const override { return layout_; }
  std::int64_t max_rows() const override { return max_rows_; }
  void bind(std::span<float> weights, std::span<float> gradients) override {
    weights_ = weights;
    gradients_ = gradients;
  }
  void initialize(std::uint64_t seed, std::span<float> weights) const override {
    std::fill(weights.begin(), weights.end(), 0.0F);
    Rng rng(seed, 3);
    for (std::size_t j = 0; j < kStepModelWidth; ++j) weights[slot(j)] = static_cast<float>(rng.below(9)) - 4;
  }
  void weights_changed() override {}
  tensor::BatchMemory batch() override { return {inputs_, {}, labels_}; }

  tensor::ForwardResult forward(std::int64_t rows) override {
    PL_CHECK(rows > 0 && rows <= max_rows_, "rows");
    rows_ = rows;
    tensor::ForwardResult result{0, 0, rows};
    for (std::int64_t r = 0; r < rows; ++r) {
      float error = -static_cast<float>(labels_[static_cast<std::size_t>(r)]);
      for (std::size_t j = 0; j < kStepModelWidth; ++j) error += weights_[slot(j)] * input(r, j);
      signs_[static_cast<std::size_t>(r)] = error > 0 ? 1.0F : -1.0F;
      result.loss_sum += std::abs(error);
      result.correct += std::abs(error) < 0.5F ? 1 : 0;
    }
    return result;
  }

  void backward(float scale, bool accumulate, const OnReady& on_ready) override {
    if (!accumulate) std::fill(gradients_.begin(), gradients_.end(), 0.0F);
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::size_t j = 0; j < kStepModelWidth; ++j) {
        gradients_[slot(j)] += scale * signs_[static_cast<std::size_t>(r)] * input(r, j);
      }
    }
    if (on_ready == nullptr) return;
    on_ready(32, 48);
    on_ready(0, 32);
  }

 private:
  static std::size_t slot(std::size_t j) { return j < 24 ? j : j + 8; }
  float input(std::int64_t row, std::size_t j) const {
    return inputs_[static_cast<std::size_t>(row * kStepModelWidth) + j];
  }

  tensor::ParameterLayout layout_;
  std::vector<float> inputs_;
  std::vector<std::int32_t> labels_;
  std::vector<float> signs_;
  const std::int64_t max_rows_;
  std::int64_t rows_ = 0;
  std::span<float> weights_, gradients_;
};

inline trainer::OpenWorkload step_workload(std::int64_t train, std::int64_t test) {
  return [train, test](const v1::TrainingSpec&) -> absl::StatusOr<trainer::Workload> {
    trainer::Workload workload;
    workload.data.train = std::make_shared<StepDataset>(train);
    if (test > 0) workload.data.test = std::make_shared<StepDataset>(test);
    workload.compile = [](trainer::Purpose,
                          std::int64_t rows) -> absl::StatusOr<std::unique_ptr<tensor::Program>> {
      return std::make_unique<StepProgram>(rows);
    };
    return workload;
  };
}

// SGD over the step model: everything a power of two.
inline v1::TrainingSpec step_spec(std::int64_t steps, std::int64_t batch) {
  v1::TrainingSpec spec;
  spec.set_steps(steps);
  spec.set_global_batch_size(batch);
  spec.set_seed(5);
  spec.mutable_optimizer()->set_learning_rate(0.125);
  spec.mutable_exchange()->set_bucket_bytes(128);
  spec.mutable_exchange()->set_overlap(true);
  spec.mutable_exchange()->set_timeout_ms(20'000);
  spec.mutable_data()->set_prefetch(2);
  spec.mutable_evaluation()->set_batch_size(8);
  return spec;
}

}  // namespace paceline::testing
