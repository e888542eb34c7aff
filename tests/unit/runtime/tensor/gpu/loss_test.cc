// Softmax and cross-entropy over many classes: the logits are in memory once, and their gradient is written
// over them once, whoever of a pass does it.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/rng.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/gpu/gpu_device.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::tensor {
namespace {

constexpr std::int64_t kLossRows = 6;
constexpr std::int64_t kClasses = 5003;

class GpuLossTest : public ::testing::TestWithParam<Precision> {
 protected:
  GpuLossTest() {
    const bool real = cuda::on_real_gpu();
    if (!real) cuda::fake().reset();
    auto device = open_gpu_device(
        {.driver = cuda::test_driver(), .cublaslt = real ? "" : binary_path(PACELINE_FAKE_CUBLASLT)});
    EXPECT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    GraphBuilder graph;
    graph.softmax_cross_entropy(graph.dense("fc", graph.input({8}), kClasses));
    auto program = compile(graph, *device_, {.max_rows = kLossRows, .precision = GetParam()});
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    weights_.resize(program_->parameters().elements);
    gradients_.resize(weights_.size());
    program_->bind(weights_, gradients_);
    program_->initialize(5, weights_);
    program_->weights_changed();
    Rng rng(5, 1);
    for (float& x : program_->batch().inputs) x = rng.normal();
    for (std::int32_t& l : program_->batch().labels) l = static_cast<std::int32_t>(rng.below(kClasses));
  }

  double pass(float scale) {
    double loss = 0;
    const auto on_result = [&](const ForwardResult& result) {
      loss = result.loss_sum;
      return absl::OkStatus();
    };
    const absl::Status status = program_->pass(kLossRows, scale, false, on_result, nullptr);
    EXPECT_TRUE(status.ok()) << status;
    return loss;
  }
  double forward_and_backward(float scale) {
    const auto result = program_->forward(kLossRows);
    EXPECT_TRUE(result.ok()) << result.status();
    const absl::Status status = program_->backward(scale, false, nullptr);
    EXPECT_TRUE(status.ok()) << status;
    return result->loss_sum;
  }
  static std::size_t kernels_run() { return cuda::on_real_gpu() ? 0 : cuda::fake().kernels_run(); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Program> program_;
  std::vector<float> weights_, gradients_;
};

TEST_P(GpuLossTest, AWholePassGivesTheSameBits) {
  for (const float scale : {1.0F, 0.37F}) {
    const double loss = forward_and_backward(scale);
    const std::vector<float> expected = gradients_;
    gradients_.assign(gradients_.size(), 7);
    EXPECT_EQ(pass(scale), loss);
    EXPECT_EQ(gradients_, expected);
    EXPECT_NE(gradients_, std::vector<float>(gradients_.size(), 0));
    EXPECT_EQ(program_->forward(kLossRows)->loss_sum, loss);  // leaves no gradient behind
    EXPECT_EQ(forward_and_backward(scale), loss);
    EXPECT_EQ(gradients_, expected);
  }
}

TEST_P(GpuLossTest, AWholePassWritesTheGradientInItsForwardOperation) {
  PL_EMULATED_ONLY();
  pass(1);  // converts the weights
  const std::size_t before = kernels_run();
  pass(1);
  const std::size_t whole = kernels_run() - before;
  forward_and_backward(1);
  EXPECT_EQ(kernels_run() - before - whole, whole + 1);
}

TEST_P(GpuLossTest, TheArenaHoldsTheLogitsOnce) {
  PL_EMULATED_ONLY();  // a real cuBLASLt may ask for a larger workspace
  const std::size_t logits = kLossRows * kClasses * (GetParam() == Precision::kBF16 ? 2 : 4);
  const auto use = program_->memory();
  ASSERT_TRUE(use.ok()) << use.status();
  EXPECT_GE(use->activations, logits);
  EXPECT_LT(use->activations, logits * 3 / 2);
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuLossTest, ::testing::Values(Precision::kF32, Precision::kBF16),
                         [](const auto& i) { return i.param == Precision::kBF16 ? "bf16" : "fp32"; });

}  // namespace
}  // namespace paceline::tensor
