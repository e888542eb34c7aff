// Steps of training whose passes are graphs, against the same steps without: batches, row counts,
// micro-batches, weights and programs that change between them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "runtime/optimizer/gpu/gpu_state.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/gpu/gpu_device.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::optimizer {
namespace {

using tensor::Value;
using ::testing::IsEmpty;

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kTime = 16;  // six samples have more tokens than one piece of an embedding's plan
constexpr std::int32_t kVocabulary = 11;
constexpr int kWidth = 8;

v1::OptimizerSpec adamw(double clip_norm) {
  v1::OptimizerSpec spec;
  spec.set_type(v1::OptimizerSpec::ADAMW);
  spec.set_learning_rate(0.1);
  spec.set_weight_decay(0.01);
  spec.set_clip_norm(clip_norm);
  spec.set_beta1(0.9);
  spec.set_beta2(0.99);
  spec.set_epsilon(1e-6);
  return spec;
}

// A transformer of one block, whose table is used at both ends.
void language_model(tensor::GraphBuilder& g) {
  using tensor::Init;
  const Value table = g.parameter("wte", {kVocabulary, kWidth}, Init::normal(0.5F));
  Value h =
      g.add(g.embedding(g.tokens(kTime), table), g.parameter("wpe", {kTime, kWidth}, Init::normal(0.5F)));
  const Value n = g.layer_norm(h, g.parameter("gain", {kWidth}, Init::constant(1)),
                               g.parameter("bias", {kWidth}, Init::constant(0)));
  h = g.add(h, g.causal_self_attention(g.dense("qkv", n, 3 * kWidth), 2));
  h = g.add(h, g.dense("down", g.gelu(g.dense("up", h, 2 * kWidth)), kWidth));
  g.softmax_cross_entropy(g.linear(h, table));
}

// All that trains on one GPU.
class Training {
 public:
  Training(tensor::Precision precision, bool graphs, double clip_norm)
      : device_(cuda::must(tensor::open_gpu_device(
            {.driver = cuda::test_driver(),
             .cublaslt = cuda::on_real_gpu() ? "" : binary_path(PACELINE_FAKE_CUBLASLT),
             .graphs = graphs,
             .no_graphs = [](const absl::Status& why) { ADD_FAILURE() << why; }}))),
        queue_(cuda::must(device_->open_queue())),
        program_(compiled(precision, tensor::Mode::kTraining)),
        evaluation_(compiled(precision, tensor::Mode::kInference)),
        optimizer_(cuda::must(Optimizer::create(adamw(clip_norm), program_->parameters()))),
        weights_(program_->parameters().elements),
        gradients_(weights_.size()),
        state_(cuda::must(make_gpu_state(*device_, queue_, adamw(clip_norm), program_->parameters()))) {
    program_->initialize(11, weights_);
    upload();
    bind_on_device();
  }

  void upload() { EXPECT_TRUE(state_->upload({weights_, optimizer_.state()}, 0).ok()); }
  void bind_on_device() {
    tensor::DeviceVectors vectors = state_->vectors();
    EXPECT_TRUE(program_->bind_on_device(vectors).ok());
    vectors.gradients = nullptr;
    EXPECT_TRUE(evaluation_->bind_on_device(vectors).ok());
  }
  // A pass of the host's vectors in between; its loss and gradients.
  std::pair<double, std::vector<float>> pass_of_host(std::uint64_t batch) {
    program_->bind(weights_, gradients_);
    const double loss = pass(batch, kRows, false, true);
    bind_on_device();
    return {loss, gradients_};
  }

  double pass(std::uint64_t batch, std::int64_t rows, bool accumulate, bool tells) {
    fill(*program_, batch, rows);
    double loss = 0;
    std::size_t told = 0;
    const tensor::Program::OnReady on_ready = [&](std::size_t begin, std::size_t end) {
      told += end - begin;
    };
    const absl::Status passed = program_->pass(
        rows, 1.0F / kRows, accumulate,
        [&](const tensor::ForwardResult& result) {
          loss = result.loss_sum;
          return absl::OkStatus();
        },
        tells ? on_ready : nullptr);
    EXPECT_TRUE(passed.ok()) << passed;
    EXPECT_EQ(told, tells ? weights_.size() : 0U);
    return loss;
  }
  // The same in its two halves.
  double halves(std::uint64_t batch, std::int64_t rows) {
    fill(*program_, batch, rows);
    const auto result = program_->forward(rows);
    EXPECT_TRUE(result.ok() && program_->backward(1.0F / kRows, false, nullptr).ok());
    return result->loss_sum;
  }
  double evaluate(std::uint64_t batch, std::int64_t rows) {
    fill(*evaluation_, batch, rows);
    const auto result = evaluation_->forward(rows);
    EXPECT_TRUE(result.ok()) << result.status();
    return result->loss_sum;
  }
  void update() {
    rate_ *= 0.9;
    EXPECT_TRUE(state_->update(rate_).ok());
  }
  std::uint64_t hash() { return cuda::must(state_->hash()); }

 private:
  std::unique_ptr<tensor::Program> compiled(tensor::Precision precision, tensor::Mode mode) {
    tensor::GraphBuilder graph;
    language_model(graph);
    return cuda::must(tensor::compile(
        graph, *device_, {.max_rows = kRows, .precision = precision, .mode = mode, .queue = queue_}));
  }
  // Of some batches all tokens are the same, and of some there are all kinds.
  static void fill(tensor::Program& program, std::uint64_t number, std::int64_t rows) {
    Rng rng(5, number);
    const tensor::BatchMemory batch = program.batch();
    const std::uint64_t kinds = number % 3 == 0 ? 1 : number % 3 == 1 ? 2 : kVocabulary;
    const auto positions = static_cast<std::size_t>(rows * kTime);
    for (auto& t : batch.tokens.first(positions)) t = static_cast<std::int32_t>(rng.below(kinds));
    for (auto& l : batch.labels.first(positions)) l = static_cast<std::int32_t>(rng.below(kVocabulary));
  }

  std::unique_ptr<tensor::Device> device_;
  std::shared_ptr<tensor::Queue> queue_;
  std::unique_ptr<tensor::Program> program_, evaluation_;
  Optimizer optimizer_;  // for its state's memory
  std::vector<float> weights_, gradients_;
  std::unique_ptr<DeviceState> state_;
  double rate_ = 0.1;
};

class GpuTrainingStepsTest : public ::testing::TestWithParam<tensor::Precision> {
 protected:
  GpuTrainingStepsTest() {
    if (cuda::on_real_gpu()) return;
    cuda::fake().reset();
    cuda::fake().control().multiprocessors = 1;
  }
  ~GpuTrainingStepsTest() override {
    if (cuda::on_real_gpu()) return;
    EXPECT_THAT(cuda::fake().problems(), IsEmpty());
    cuda::fake().reset();
  }
};

TEST_P(GpuTrainingStepsTest, AreTheSameBitsWithGraphsAndWithout) {
  Training with(GetParam(), true, 0.5), without(GetParam(), false, 0.5);
  const auto both = [&](const char* what, auto&& work) {
    const auto got = work(with), expected = work(without);
    EXPECT_EQ(got, expected) << what;
  };
  std::uint64_t batch = 0;
  for (int round = 0; round < 2; ++round) {
    for (const std::int64_t rows : {kRows, kRows, std::int64_t{3}, kRows}) {
      SCOPED_TRACE(::testing::Message() << "batch " << batch << " of " << rows);
      both("a step of micro-batches", [&](Training& t) {
        double loss = t.pass(batch, rows, false, false);
        loss += t.pass(batch + 1, kRows, true, false);
        loss += t.pass(batch + 2, 3, true, true);
        t.update();
        return loss;
      });
      both("a step of one", [&](Training& t) {
        const double loss = t.pass(batch + 3, rows, false, false);
        t.update();
        return loss;
      });
      both("a step of halves", [&](Training& t) {
        const double loss = t.halves(batch + 4, rows);
        t.update();
        return loss;
      });
      both("evaluation", [&](Training& t) { return t.evaluate(batch + 5, rows); });
      both("weights", [](Training& t) { return t.hash(); });
      batch += 6;
    }
    both("the host's vectors", [&](Training& t) { return t.pass_of_host(batch); });
    if (round == 0) {
      both("other weights", [](Training& t) {
        t.upload();
        return t.hash();
      });
    }
  }
}

TEST_P(GpuTrainingStepsTest, AreTwoLaunchesAndTheUpdates) {
  PL_EMULATED_ONLY();
  std::map<std::string, std::size_t> before;
  const auto calls = [&](const std::string& name) {
    const std::size_t all = cuda::fake().calls_of(name);
    return all - std::exchange(before[name], all);
  };
  for (const double clip_norm : {0.0, 0.5}) {
    Training training(GetParam(), true, clip_norm);
    for (std::uint64_t step = 0; step < 6; ++step) {
      for (const char* call :
           {"cuLaunchKernel", "cuGraphLaunch", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
            "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuEventRecord"})
        calls(call);
      training.pass(step, kRows, false, false);
      training.update();
      if (step < 2) continue;
      EXPECT_EQ(calls("cuGraphLaunch"), 2U);
      EXPECT_EQ(calls("cuLaunchKernel"), clip_norm > 0 ? 3U : 1U) << "norm, factor, weights";
      EXPECT_EQ(calls("cuMemcpyHtoDAsync_v2"), 3U) << "tokens, labels, and the order of the embedding's sum";
      EXPECT_EQ(calls("cuMemcpyDtoHAsync_v2"), clip_norm > 0 ? 1U : 0U) << "the norm";
      EXPECT_EQ(calls("cuMemcpyDtoDAsync_v2") + calls("cuMemsetD8Async"), 0U);
      EXPECT_EQ(calls("cuEventRecord"), 8U)
          << "the batch, the result, the pass's end, the step's; four tell the time";
    }
  }
}

TEST_P(GpuTrainingStepsTest, MakeNothingAfterTheSecond) {
  PL_EMULATED_ONLY();
  Training training(GetParam(), true, 0.5);
  const auto made = [] {
    std::size_t all = 0;
    for (const char* call : {"cuMemAlloc_v2", "cuMemHostAlloc", "cuMemHostRegister_v2", "cuEventCreate",
                             "cuStreamCreate", "cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags",
                             "cuMemFree_v2", "cuMemFreeHost", "cuGraphExecDestroy", "cuEventDestroy_v2"})
      all += cuda::fake().calls_of(call);
    return all;
  };
  std::size_t before = 0;
  for (std::uint64_t step = 0; step < 5; ++step) {
    training.pass(step, kRows, false, false);
    training.pass(step + 1, 3, true, true);
    training.update();
    training.evaluate(step, kRows);
    if (step >= 2) {
      EXPECT_EQ(made(), before) << step;
    }
    before = made();
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuTrainingStepsTest,
                         ::testing::Values(tensor::Precision::kF32, tensor::Precision::kBF16),
                         [](const auto& i) { return i.param == tensor::Precision::kBF16 ? "bf16" : "fp32"; });

}  // namespace
}  // namespace paceline::optimizer
