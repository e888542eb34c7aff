#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/tensor/compiler.h"
#include "runtime/tensor/device.h"
#include "tests/unit/runtime/tensor/operator_cases.h"
#include "tests/unit/runtime/tensor/oracle.h"

namespace paceline::tensor {

// The device under test: each test program has its own.
std::unique_ptr<Device> make_test_device();

// A compiled case with random weights and batch, and the oracle on the same numbers.
class Trial {
 public:
  Trial(const Case& c, std::uint64_t stream, CompileOptions options) : random_{Rng(kSeed, stream)} {
    c.build(graph_, random_);
    EXPECT_TRUE(graph_.status().ok()) << graph_.status();
    oracle_ = std::make_unique<Oracle>(graph_);
    auto program = compile(graph_, *device_, options);
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    weights_.assign(program_->parameters().elements, 0);
    gradients_.assign(weights_.size(), -7);
    program_->bind(weights_, gradients_);
    program_->initialize(kSeed, weights_);
    program_->weights_changed();
    fill_batch();
    read_weights();
  }

  Program& program() { return *program_; }
  Oracle& oracle() { return *oracle_; }
  std::vector<float>& weights() { return weights_; }
  std::vector<float>& gradients() { return gradients_; }
  Random& random() { return random_; }

  void read_weights() {
    for (const auto& p : program_->parameters().parameters) {
      oracle_->parameters[p.name] = {weights_.begin() + static_cast<std::ptrdiff_t>(p.offset),
                                     weights_.begin() + static_cast<std::ptrdiff_t>(p.offset + p.count)};
    }
  }

  // The oracle's derivative by one weight.
  double difference(const Parameter& p, std::size_t element, std::int64_t rows) {
    return difference(oracle_->parameters.at(p.name)[element], rows);
  }
  // By one number of the oracle's.
  double difference(double& w, std::int64_t rows) {
    constexpr double kStep = 1e-5;
    const double saved = w;
    w = saved + kStep;
    const double above = oracle_->loss_sum(rows);
    w = saved - kStep;
    const double below = oracle_->loss_sum(rows);
    w = saved;
    return (above - below) / (2 * kStep);
  }

 private:
  void fill_batch() {
    const BatchMemory batch = program_->batch();
    for (float& v : batch.inputs) v = random_.rng.normal();
    for (float& v : batch.offsets) v = random_.rng.normal();
    std::int64_t vocabulary = 0;
    for (const Node& node : graph_.nodes()) {
      if (node.kind == OpKind::kEmbedding) vocabulary = graph_.dims(node.inputs[1])[0];
    }
    for (auto& t : batch.tokens) t = static_cast<std::int32_t>(random_.between(0, vocabulary - 1));
    const Node& loss = graph_.nodes()[static_cast<std::size_t>(graph_.loss().id)];
    std::int64_t classes = loss.kind == OpKind::kSigmoidCrossEntropy ? 2 : graph_.dims(loss.inputs[0]).back();
    for (const Node& node : graph_.nodes()) {
      if (node.kind == OpKind::kAtPosition || node.kind == OpKind::kEmbeddingOfLabel)
        classes = graph_.dims(node.inputs[0])[0];
    }
    for (auto& l : batch.labels) l = static_cast<std::int32_t>(random_.between(0, classes - 1));
    oracle_->inputs.assign(batch.inputs.begin(), batch.inputs.end());
    oracle_->offsets.assign(batch.offsets.begin(), batch.offsets.end());
    oracle_->tokens.assign(batch.tokens.begin(), batch.tokens.end());
    oracle_->labels.assign(batch.labels.begin(), batch.labels.end());
  }

  std::unique_ptr<Device> device_ = make_test_device();
  Random random_;
  GraphBuilder graph_;
  std::unique_ptr<Oracle> oracle_;
  std::vector<float> weights_;
  std::vector<float> gradients_;
  std::unique_ptr<Program> program_;
};

}  // namespace paceline::tensor
