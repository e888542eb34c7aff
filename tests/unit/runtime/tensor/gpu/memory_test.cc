// What a program says of the GPU's memory before it takes any.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/status.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/gpu/gpu_device.h"
#include "tests/support/assert_ok.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::tensor {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

class GpuMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::on_real_gpu()) GTEST_SKIP() << "a real GPU has more memory than these tests take";
    cuda::fake().reset();
    cuda::fake().control().memory_bytes = 32 * kMebibyte;
    auto device =
        open_gpu_device({.driver = cuda::test_driver(), .cublaslt = binary_path(PACELINE_FAKE_CUBLASLT)});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  void TearDown() override {
    device_.reset();
    if (!cuda::on_real_gpu()) cuda::fake().reset();
  }

  // Activations of 16 KiB and more a sample.
  absl::StatusOr<std::unique_ptr<Program>> compile_for(std::int64_t rows,
                                                       Precision precision = Precision::kF32,
                                                       const LeftRoom& leave = {}) {
    GraphBuilder graph;
    const Value x = graph.input({64});
    const Value hidden = graph.relu(graph.dense("fc1", x, 4096));
    graph.softmax_cross_entropy(graph.dense("fc2", graph.tanh(hidden), 8));
    return compile(graph, *device_, {.max_rows = rows, .precision = precision, .leave = leave});
  }

  // Ten layers, of 4 KiB a sample each.
  absl::StatusOr<std::unique_ptr<Program>> compile_deep(std::int64_t rows, bool recompute) {
    GraphBuilder graph;
    Value h = graph.input({16});
    for (int i = 0; i < 10; ++i) h = graph.relu(graph.dense(str_cat("fc", i), h, 1024));
    graph.softmax_cross_entropy(graph.dense("output", h, 8));
    return compile(graph, *device_, {.max_rows = rows, .recompute_activations = recompute});
  }

  std::unique_ptr<Device> device_;
};

TEST_F(GpuMemoryTest, ATooLargeBatchIsRefusedWithAboutHowManyMayFit) {
  const auto refused = compile_for(5000);
  ASSERT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  const std::string message(refused.status().message());
  int fits = 0;
  const std::size_t at = message.find("about ");
  ASSERT_NE(at, std::string::npos) << message;
  ASSERT_EQ(std::sscanf(message.c_str() + at, "about %d may fit", &fits), 1) << message;
  EXPECT_GT(fits, 100);
  EXPECT_LT(fits, 5000);
  EXPECT_TRUE(compile_for(fits * 9 / 10).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(compile_for(fits * 11 / 10).status()));
}

TEST_F(GpuMemoryTest, RoomThatIsWantedLaterIsLeft) {
  const LeftRoom leave{8 * kMebibyte, "weights and gradient"};
  ASSERT_TRUE(compile_for(200).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(compile_for(200, Precision::kF32, {28 * kMebibyte, "state"}).status()));
  PL_ASSERT_OK(made, compile_for(200, Precision::kF32, leave));
  EXPECT_GE((*made)->memory()->free, leave.bytes + kMebibyte);
}

// Activations of 1,000 samples take some 40 MiB, and with their gradients more.
TEST_F(GpuMemoryTest, RecomputingTakesLess) {
  EXPECT_TRUE(absl::IsResourceExhausted(compile_deep(1000, false).status()));
  EXPECT_TRUE(compile_deep(1000, true).ok());
}

TEST_F(GpuMemoryTest, OneSampleThatIsTooLargeIsRefused) {
  cuda::fake().control().memory_bytes = kMebibyte;
  GraphBuilder graph;
  const Value x = graph.input({16});
  graph.softmax_cross_entropy(graph.dense("fc2", graph.relu(graph.dense("fc1", x, 300'000)), 2));
  EXPECT_TRUE(absl::IsResourceExhausted(compile(graph, *device_, {.max_rows = 1}).status()));
}

// A larger count than before is refused without harm to what was there.
TEST_F(GpuMemoryTest, RefusedSizeLeavesTheProgramUsable) {
  PL_ASSERT_OK(made, compile_for(200));
  Program& program = **made;
  PL_ASSERT_OK(use, program.memory());
  EXPECT_GT(use->activations, 200U * 4096 * sizeof(float));
  EXPECT_GE(use->batch, 200U * 64 * sizeof(float));
  EXPECT_EQ(use->vectors, 0U);
  EXPECT_EQ(use->half_weights, 0U);
  EXPECT_EQ(use->total, 32 * kMebibyte);
  EXPECT_LE(use->free, use->total - use->activations - use->batch);

  std::vector<float> weights(program.parameters().elements), gradients(weights.size());
  program.bind(weights, gradients);
  program.initialize(1, weights);
  program.weights_changed();
  PL_ASSERT_OK(loss, program.forward(200));
  EXPECT_EQ(program.memory()->vectors, 2 * weights.size() * sizeof(float));
}

TEST_F(GpuMemoryTest, CopiesOfTheHostsVectorsAreGivenBack) {
  PL_ASSERT_OK(made, compile_for(200));
  Program& program = **made;
  ASSERT_TRUE(program.unbind().ok()) << "there are none";
  std::vector<float> weights(program.parameters().elements), gradients(weights.size());
  program.initialize(1, weights);
  const std::size_t before = program.memory()->free;
  double losses[2] = {};
  for (double& loss : losses) {
    program.bind(weights, gradients);
    PL_ASSERT_OK(found, program.forward(200));
    loss = found->loss_sum;
    EXPECT_LT(program.memory()->free, before);
    ASSERT_TRUE(program.unbind().ok());
    EXPECT_EQ(program.memory()->vectors, 0U);
    EXPECT_EQ(program.memory()->free, before);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST_F(GpuMemoryTest, Bf16CopiesOfWeightsCount) {
  PL_ASSERT_OK(made, compile_for(10, Precision::kBF16));
  EXPECT_GE((*made)->memory()->half_weights, (64U + 8) * 4096 * 2);
}

}  // namespace
}  // namespace paceline::tensor
