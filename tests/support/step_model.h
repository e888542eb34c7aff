#pragma once

// A model and data whose gradients are small integers, so that sums are exact in any order: one worker and
// many must agree to the bit.
//
// The model: score = sum of w[j] * x[j]; loss = |score - label|, whose gradient is x or -x. Steps of a power
// of two keep the weights exact. Samples: x[j] in {-2..2}, a label in {-8..8}, both from a hash of the index.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/program.h"
#include "runtime/trainer/workload.h"

namespace paceline {

inline constexpr std::int64_t kStepModelWidth = 40;
inline constexpr std::int64_t kStepTrain = 96, kStepTest = 20;  // samples

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

// One that can be read so many times only.
class FailingDataset final : public data::Dataset {
 public:
  FailingDataset(std::int64_t size, int reads) : samples_(size), reads_(reads) {}
  const data::SampleShape& shape() const override { return samples_.shape(); }
  std::int64_t size() const override { return samples_.size(); }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t seed,
                     const data::BatchView& batch) const override {
    if (reads_-- <= 0) return absl::OutOfRangeError("token 60, with a vocabulary of 50");
    return samples_.fetch(indices, seed, batch);
  }

 private:
  const StepDataset samples_;
  mutable std::atomic<int> reads_;
};

// What programs whose gradients the test computes itself have in common.
class HandMadeProgram : public tensor::Program {
 public:
  explicit HandMadeProgram(std::int64_t max_rows)
      : labels_(static_cast<std::size_t>(max_rows)), max_rows_(max_rows) {}
  const tensor::ParameterLayout& parameters() const final { return layout_; }
  std::int64_t max_rows() const final { return max_rows_; }
  void bind(std::span<float> weights, std::span<float> gradients) final {
    weights_ = weights;
    gradients_ = gradients;
  }
  void weights_changed() final {}

 protected:
  // Of the batch at hand.
  void begin(std::int64_t rows) {
    PL_CHECK(rows > 0 && rows <= max_rows_, "rows");
    rows_ = static_cast<std::size_t>(rows);
  }

  tensor::ParameterLayout layout_;
  std::vector<std::int32_t> labels_;
  std::size_t rows_ = 0;
  std::span<float> weights_, gradients_;

 private:
  const std::int64_t max_rows_;
};

class StepProgram final : public HandMadeProgram {
 public:
  explicit StepProgram(std::int64_t max_rows)
      : HandMadeProgram(max_rows),
        inputs_(static_cast<std::size_t>(max_rows * kStepModelWidth)),
        signs_(static_cast<std::size_t>(max_rows)) {
    layout_.parameters = {{"first", {24}, 0, 24, true}, {"second", {16}, 32, 16, false}};
    layout_.elements = 48;
    layout_.trained_elements = 40;
  }
  void initialize(std::uint64_t seed, std::span<float> weights) const override {
    std::fill(weights.begin(), weights.end(), 0.0F);
    Rng rng(seed, 3);
    for (std::size_t j = 0; j < kStepModelWidth; ++j) weights[slot(j)] = static_cast<float>(rng.below(9)) - 4;
  }
  tensor::BatchMemory batch() override { return {inputs_, {}, labels_}; }

  absl::StatusOr<tensor::ForwardResult> forward(std::int64_t rows) override {
    tensor::ForwardResult result{0, 0, rows};
    begin(rows);
    for (std::size_t r = 0; r < rows_; ++r) {
      float error = -static_cast<float>(labels_[r]);
      for (std::size_t j = 0; j < kStepModelWidth; ++j) error += weights_[slot(j)] * input(r, j);
      signs_[r] = error > 0 ? 1.0F : -1.0F;
      result.loss_sum += std::abs(error);
      result.correct += std::abs(error) < 0.5F ? 1 : 0;
    }
    return result;
  }

  absl::Status backward(float scale, bool accumulate, const OnReady& on_ready) override {
    if (!accumulate) std::fill(gradients_.begin(), gradients_.end(), 0.0F);
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t j = 0; j < kStepModelWidth; ++j)
        gradients_[slot(j)] += scale * signs_[r] * input(r, j);
    }
    if (on_ready == nullptr) return absl::OkStatus();
    on_ready(32, 48);
    on_ready(0, 32);
    return absl::OkStatus();
  }

 private:
  static std::size_t slot(std::size_t j) { return j < 24 ? j : j + 8; }
  float input(std::size_t row, std::size_t j) const { return inputs_[row * kStepModelWidth + j]; }

  std::vector<float> inputs_;
  std::vector<float> signs_;
};

// Sets of Samples(count, more...) for Programs.
template <typename Samples, typename Program, typename... More>
trainer::Workload workload_of(std::int64_t train, std::int64_t test, const More&... more) {
  trainer::Workload workload;
  workload.data.train = std::make_shared<Samples>(train, more...);
  if (test > 0) workload.data.test = std::make_shared<Samples>(test, more...);
  workload.compile = [](trainer::Purpose, std::int64_t rows,
                        const tensor::LeftRoom&) -> absl::StatusOr<std::unique_ptr<tensor::Program>> {
    return std::make_unique<Program>(rows);
  };
  return workload;
}

inline trainer::OpenWorkload step_workload(std::int64_t train, std::int64_t test) {
  return [train, test](const v1::TrainingSpec&) -> absl::StatusOr<trainer::Workload> {
    return workload_of<StepDataset, StepProgram>(train, test);
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

// Saved in `folder` every so many steps, and at the end.
inline void save_in(v1::TrainingSpec& spec, const std::string& folder, std::int64_t every_steps) {
  spec.mutable_checkpoint()->set_directory(folder);
  spec.mutable_checkpoint()->set_every_steps(every_steps);
}

// On parameter servers, every update of all workers' gradients.
inline void use_servers(v1::TrainingSpec& spec, int workers, int servers) {
  v1::ParameterServerSpec& group = *spec.mutable_parameter_server();
  group.set_workers(workers);
  group.set_servers(servers);
  group.set_units_per_step(workers);
  group.set_gradients_per_step(workers);
  group.set_overlap(true);
  group.set_timeout_ms(20'000);
}

}  // namespace paceline
