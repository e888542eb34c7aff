#pragma once

// A model with sparse tables whose gradients are small integers, so that sums are exact in any order: one
// worker and many, on any servers, must agree to the bit (step_model.h is the one without tables).
//
// A sample is a value in {0..4} of each of three fields and a label, 0 or 1, from a hash of its number. The
// model: score = sum of the fields' embeddings + sum of w[j] * (j % 3 - 1) + the wide weights; loss = |score
// - label|, whose gradient by every number of a row is 1 or -1.

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/program.h"
#include "runtime/trainer/workload.h"
#include "tests/support/step_model.h"

namespace paceline {

inline constexpr std::int64_t kClickFields = 3, kClickEmbedding = 2;
inline constexpr std::int64_t kClickTrain = 96, kClickTest = 40;  // samples
inline constexpr std::size_t kClickInputs = kClickFields * kClickEmbedding;

// For a reader that asks whether to go on.
inline absl::Status yes() {
  return absl::OkStatus();
}

// Whether there is something to learn.
enum class ClickLabels : std::uint8_t { kRandom, kOfTheFirstValue, kAllOnes };

class ClickDataset final : public data::Dataset {
 public:
  explicit ClickDataset(std::int64_t size, ClickLabels labels = ClickLabels::kRandom)
      : size_(size), labels_(labels) {
    shape_.kind = data::InputKind::kTokens;
    shape_.dims = {kClickFields};
    shape_.classes = 2;
  }
  const data::SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return size_; }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t,
                     const data::BatchView& batch) const override {
    PL_CHECK(batch.tokens.size() == indices.size() * kClickFields && batch.labels.size() == indices.size(),
             "the batch has room for exactly these samples");
    std::size_t at = 0;
    for (std::size_t row = 0; row < indices.size(); ++row) {
      Rng rng(static_cast<std::uint64_t>(indices[row]), 11);
      for (std::int64_t f = 0; f < kClickFields; ++f)
        batch.tokens[at++] = static_cast<std::int32_t>(rng.below(5));
      const std::int32_t first = batch.tokens[at - kClickFields];
      batch.labels[row] = labels_ == ClickLabels::kRandom    ? static_cast<std::int32_t>(rng.below(2))
                          : labels_ == ClickLabels::kAllOnes ? 1
                                                             : static_cast<std::int32_t>(first % 2);
    }
    return absl::OkStatus();
  }

 private:
  std::int64_t size_;
  ClickLabels labels_;
  data::SampleShape shape_;
};

class ClickProgram final : public HandMadeProgram {
 public:
  explicit ClickProgram(std::int64_t max_rows)
      : HandMadeProgram(max_rows),
        inputs_(static_cast<std::size_t>(max_rows) * kClickInputs),
        input_gradients_(inputs_.size()),
        offsets_(static_cast<std::size_t>(max_rows)),
        offset_gradients_(offsets_.size()),
        scores_(offsets_.size()) {
    layout_.parameters = {{"w", {6}, 0, 6, true}};
    layout_.elements = 8;
    layout_.trained_elements = 6;
  }
  void initialize(std::uint64_t seed, std::span<float> weights) const override {
    std::fill(weights.begin(), weights.end(), 0.0F);
    Rng rng(seed, 3);
    for (std::size_t j = 0; j < kClickInputs; ++j) weights[j] = static_cast<float>(rng.below(9)) / 8 - 0.5F;
  }
  tensor::BatchMemory batch() override {
    return {inputs_, {}, labels_, offsets_, input_gradients_, offset_gradients_, scores_};
  }

  absl::StatusOr<tensor::ForwardResult> forward(std::int64_t rows) override {
    tensor::ForwardResult result{0, 0, rows};
    begin(rows);
    for (std::size_t r = 0; r < rows_; ++r) {
      float score = offsets_[r];
      for (std::size_t j = 0; j < kClickInputs; ++j)
        score += inputs_[r * kClickInputs + j] + weights_[j] * factor(j);
      scores_[r] = score;
      result.loss_sum += std::abs(score - static_cast<float>(labels_[r]));
      result.correct += (score > 0) == (labels_[r] == 1) ? 1 : 0;
    }
    return result;
  }

  absl::Status backward(float scale, bool accumulate, const OnReady& on_ready) override {
    if (!accumulate) std::fill(gradients_.begin(), gradients_.end(), 0.0F);
    for (std::size_t r = 0; r < rows_; ++r) {
      const float sign = scores_[r] > static_cast<float>(labels_[r]) ? scale : -scale;
      offset_gradients_[r] = sign;
      for (std::size_t j = 0; j < kClickInputs; ++j) {
        gradients_[j] += sign * factor(j);
        input_gradients_[r * kClickInputs + j] = sign;
      }
    }
    if (on_ready != nullptr) on_ready(0, layout_.elements);
    return absl::OkStatus();
  }

 private:
  static float factor(std::size_t j) { return static_cast<float>(j % 3) - 1; }

  std::vector<float> inputs_, input_gradients_, offsets_, offset_gradients_, scores_;
};

// One cross, of the first two fields.
inline model::WideAndDeepShape click_shape() {
  return {kClickFields, kClickEmbedding, {{0, 1}}};
}

inline trainer::OpenWorkload click_workload(std::int64_t train, std::int64_t test,
                                            ClickLabels labels = ClickLabels::kRandom) {
  return [train, test, labels](const v1::TrainingSpec&) -> absl::StatusOr<trainer::Workload> {
    trainer::Workload workload = workload_of<ClickDataset, ClickProgram>(train, test, labels);
    workload.sparse = click_shape();
    return workload;
  };
}

// SGD for the model, FTRL for the wide table, Adam, which counts a row's steps, for the deep one.
inline v1::TrainingSpec click_spec(std::int64_t steps, std::int64_t batch, int workers, int servers) {
  v1::TrainingSpec spec = step_spec(steps, batch);
  spec.mutable_model()->mutable_wide_and_deep()->set_embedding(kClickEmbedding);
  use_servers(spec, workers, servers);
  v1::ParameterServerSpec& group = *spec.mutable_parameter_server();
  v1::TableSpec& wide = *group.add_tables();
  wide.set_name("wide");
  wide.mutable_optimizer()->set_type(v1::RowOptimizerSpec::FTRL);
  wide.mutable_optimizer()->set_learning_rate(0.5);
  wide.mutable_optimizer()->set_beta(1);
  v1::TableSpec& deep = *group.add_tables();
  deep.set_name("deep");
  v1::RowOptimizerSpec& adam = *deep.mutable_optimizer();
  adam.set_type(v1::RowOptimizerSpec::ADAM);
  adam.set_learning_rate(0.03125);
  adam.set_beta1(0.9);
  adam.set_beta2(0.99);
  adam.set_epsilon(1e-8);
  return spec;
}

}  // namespace paceline
