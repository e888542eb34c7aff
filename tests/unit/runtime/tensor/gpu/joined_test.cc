// Operations that the GPU does as one (join.h) against the same ones by themselves: results, memory, and how
// much is launched.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "runtime/cuda/matmul.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/gpu/gpu_device.h"
#include "tests/support/fake_cublaslt/matmul_test_base.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/tensor/deep_graphs.h"

namespace paceline::tensor {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kJoinedRows = 3;

// A GPU that has fewer operations joined.
class Fewer final : public Device {
 public:
  Fewer(Device& gpu, Joins joins) : gpu_(gpu), joins_(joins) {}
  absl::StatusOr<std::optional<MemoryRoom>> room() override { return gpu_.room(); }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) override {
    return gpu_.allocate(bytes);
  }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate_staging(std::size_t bytes) override {
    return gpu_.allocate_staging(bytes);
  }
  absl::StatusOr<std::unique_ptr<Queue>> open_queue() override { return gpu_.open_queue(); }
  Joins joins() const override { return joins_; }
  std::unique_ptr<Lowering> begin(const Schedule& schedule, Precision precision, Queue* queue) override {
    return gpu_.begin(schedule, precision, queue);
  }
  absl::Status enter() override { return gpu_.enter(); }

 private:
  Device& gpu_;
  const Joins joins_;
};

struct Results {
  double loss = 0;
  std::vector<float> gradients;
  bool operator==(const Results&) const = default;
};

std::size_t launches() {
  return cuda::fake().kernels_run() + cuda::fake_library().products();
}

// Of each operation but attention, the loss and the embedding's gradient: its kind, and how many kernels and
// products it launches.
class Launches final : public OperationObserver {
 public:
  void begin() override { before_ = launches(); }
  void end(std::string_view operation, std::string_view) override {
    if (operation.find("attention") == operation.npos && operation.find("softmax") == operation.npos &&
        operation != "embedding backward")
      seen.push_back(str_cat(operation, ": ", launches() - before_));
  }
  std::vector<std::string> seen;

 private:
  std::size_t before_ = 0;
};

class GpuJoinedTest : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    const bool real = cuda::on_real_gpu();
    if (!real) {
      cuda::fake().reset();
      cuda::fake().control().multiprocessors = 1;
      cuda::fake_library().reset();
    }
    gpu_ = cuda::must(open_gpu_device(
        {.driver = cuda::test_driver(), .cublaslt = real ? "" : binary_path(PACELINE_FAKE_CUBLASLT)}));
  }
  void TearDown() override {
    gpu_.reset();
    if (cuda::on_real_gpu()) return;
    EXPECT_THAT(cuda::fake().problems(), ::testing::IsEmpty());
    cuda::fake().reset();
    cuda::fake_library().reset();
  }

  // With random weights and batch, always the same ones.
  struct Made {
    std::unique_ptr<Program> program;
    std::vector<float> weights, gradients;
  };
  static Made make(const GraphBuilder& graph, Device& device, bool recompute = false,
                   Mode mode = Mode::kTraining, Precision precision = GetParam()) {
    Made made{cuda::must(compile(graph, device,
                                 {.max_rows = kJoinedRows,
                                  .precision = precision,
                                  .mode = mode,
                                  .recompute_activations = recompute})),
              {},
              {}};
    Program& program = *made.program;
    made.weights.resize(program.parameters().elements);
    made.gradients.resize(mode == Mode::kTraining ? made.weights.size() : 0);
    program.bind(made.weights, made.gradients);
    program.initialize(3, made.weights);
    program.weights_changed();
    Rng rng(3, 4);
    const BatchMemory batch = program.batch();
    for (float& x : batch.inputs) x = rng.normal();
    for (std::int32_t& t : batch.tokens) t = static_cast<std::int32_t>(rng.below(4));
    for (std::int32_t& l : batch.labels) l = static_cast<std::int32_t>(rng.below(2));
    return made;
  }
  static Results results(Made& made) {
    const auto loss = made.program->forward(kJoinedRows);
    EXPECT_TRUE(loss.ok()) << loss.status();
    EXPECT_TRUE(made.program->backward(0.5F, false, nullptr).ok());
    return {loss->loss_sum, made.gradients};
  }
  static Results results_of(const GraphBuilder& graph, Device& device, bool recompute = false,
                            Precision precision = GetParam()) {
    Made made = make(graph, device, recompute, Mode::kTraining, precision);
    return results(made);
  }
  static std::vector<DeepGraph> graphs() {
    std::vector<DeepGraph> chosen;
    for (DeepGraph& deep : deep_graphs()) {
      if (deep.name != "cnn") chosen.push_back(std::move(deep));
    }
    return chosen;
  }

  std::unique_ptr<Device> gpu_;
};

// fp32: the same bits, of the same kernels. bf16: other roundings, since the sum that GELU takes, and the
// gradient that goes through it, are not rounded in between; so no farther from what fp32 gives, but by
// chance.
TEST_P(GpuJoinedTest, TheResultsAreThoseOfSeparateOperations) {
  Fewer none(*gpu_, {});
  const auto distance = [](const std::vector<float>& a, const std::vector<float>& b) {
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
    return std::sqrt(squares);
  };
  for (const DeepGraph& deep : graphs()) {
    SCOPED_TRACE(deep.name);
    const Results joined = results_of(deep.graph, *gpu_), separate = results_of(deep.graph, none);
    if (GetParam() == Precision::kF32) {
      EXPECT_EQ(joined, separate);
      continue;
    }
    const Results exact = results_of(deep.graph, none, false, Precision::kF32);
    const double norm = distance(exact.gradients, std::vector<float>(exact.gradients.size()));
    EXPECT_LE(std::abs(joined.loss - exact.loss), 0.02 * exact.loss);
    EXPECT_LE(distance(joined.gradients, exact.gradients),
              1.5 * distance(separate.gradients, exact.gradients) + 0.002 * norm);
    EXPECT_GT(norm, 0);
  }
}

TEST_P(GpuJoinedTest, SumsAreTheSameBits) {
  Fewer none(*gpu_, {}), sums(*gpu_, {.embedding_add = true, .add_layer_norm = true});
  for (const DeepGraph& deep : graphs()) {
    SCOPED_TRACE(deep.name);
    EXPECT_EQ(results_of(deep.graph, sums), results_of(deep.graph, none));
  }
}

// Where cuBLASLt has no product with GELU in it, that is known when the program is made: it runs the same
// kernels as separate operations.
TEST_P(GpuJoinedTest, WithoutAnAlgorithmTheSameBits) {
  PL_EMULATED_ONLY();
  cuda::fake_library().control().finds_gelu = false;
  Fewer none(*gpu_, {});
  for (const DeepGraph& deep : graphs()) {
    SCOPED_TRACE(deep.name);
    Made joined = make(deep.graph, *gpu_);
    std::size_t choices = 0;
    cuda::fake_library().control().fail = [&](const std::string& call) {
      choices += call == "cublasLtMatmulAlgoGetHeuristic" ? 1 : 0;
      return CUBLAS_STATUS_SUCCESS;
    };
    const Results got = results(joined);
    EXPECT_EQ(choices, 0U);
    cuda::fake_library().control().fail = nullptr;
    EXPECT_EQ(got, results_of(deep.graph, none));
  }
}

TEST_P(GpuJoinedTest, RecomputedValuesAreTheSameBits) {
  for (const DeepGraph& deep : graphs()) {
    SCOPED_TRACE(deep.name);
    EXPECT_EQ(results_of(deep.graph, *gpu_, true), results_of(deep.graph, *gpu_, false));
  }
}

// But for what a product's algorithm works in, which is cuBLASLt's choice.
TEST_P(GpuJoinedTest, NoMoreMemoryIsTaken) {
  Fewer none(*gpu_, {});
  const std::size_t workspace = cuda::on_real_gpu() ? cuda::kMostWorkspace : 0;
  const auto bytes = [](Device& device, bool recompute, Mode mode) {
    const GraphBuilder graph =
        gpt_graph({.layers = 12, .heads = 2, .width = 32, .time = 16, .vocabulary = 64});
    return cuda::must(make(graph, device, recompute, mode).program->memory()).activations;
  };
  for (const bool recompute : {false, true}) {
    SCOPED_TRACE(recompute ? "recomputed" : "kept");
    EXPECT_LE(bytes(*gpu_, recompute, Mode::kTraining), bytes(none, recompute, Mode::kTraining) + workspace);
  }
  EXPECT_LE(bytes(*gpu_, false, Mode::kInference), bytes(none, false, Mode::kInference) + workspace);
}

// With bf16 a product's bias and GELU are in it, with fp32 the bias alone, going forward; its gradient takes
// two kernels, as do sums over the rows and the gradients of a norm.
TEST_P(GpuJoinedTest, LaunchesOfAGptOfOneBlock) {
  PL_EMULATED_ONLY();
  Made made = make(gpt_graph({.layers = 1, .heads = 2, .width = 16, .time = 6, .vocabulary = 16}), *gpu_);
  results(made);  // converts the weights
  const std::string gelu = GetParam() == Precision::kBF16 ? "1" : "2";
  Launches launched;
  made.program->observe(&launched);
  results(made);
  made.program->observe(nullptr);
  EXPECT_THAT(
      launched.seen,
      ElementsAre("embedding, add: 1", "layer_norm: 1", "linear: 1", "linear: 1", "add, layer_norm: 1",
                  "linear, gelu: " + gelu, "linear: 1", "add, layer_norm: 1", "linear: 1",
                  "linear backward weights: 1", "linear backward data: 1", "layer_norm backward: 2",
                  "linear backward weights: 3", "linear backward data, gelu backward: " + gelu,
                  "linear backward weights: 3", "linear backward data: 1", "layer_norm backward: 2",
                  "linear backward weights: 3", "linear backward data: 1", "linear backward weights: 3",
                  "linear backward data: 1", "layer_norm backward: 2", "sum rows: 2"));
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuJoinedTest, ::testing::Values(Precision::kF32, Precision::kBF16),
                         [](const auto& info) { return info.param == Precision::kF32 ? "Fp32" : "Bf16"; });

}  // namespace
}  // namespace paceline::tensor
