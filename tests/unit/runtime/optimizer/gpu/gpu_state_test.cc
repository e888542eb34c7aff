// A replica's state on a GPU, against the same steps on the host.

#include "runtime/optimizer/gpu/gpu_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "base/vector_hash.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/cpu/cpu_device.h"
#include "runtime/tensor/cpu/kernels/kernels.h"
#include "runtime/tensor/gpu/gpu_device.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::optimizer {
namespace {

using ::testing::HasSubstr;
using Type = v1::OptimizerSpec;

v1::OptimizerSpec spec_of(Type::Type type, double clip_norm = 0) {
  v1::OptimizerSpec spec;
  spec.set_type(type);
  spec.set_learning_rate(0.1);
  spec.set_weight_decay(0.01);
  spec.set_clip_norm(clip_norm);
  spec.set_beta1(0.9);
  spec.set_beta2(0.99);
  spec.set_epsilon(1e-6);
  if (type == Type::SGD) spec.set_momentum(0.5);
  return spec;
}

// A classifier of two layers, compiled for `device`.
std::unique_ptr<tensor::Program> compile_on(tensor::Device& device, std::shared_ptr<tensor::Queue> queue,
                                            tensor::Mode mode = tensor::Mode::kTraining,
                                            tensor::Precision precision = tensor::Precision::kF32) {
  tensor::GraphBuilder graph;
  const auto x = graph.input({6});
  const auto hidden = graph.relu(graph.dense("fc1", x, 5));
  graph.softmax_cross_entropy(graph.dense("fc2", hidden, 3));
  auto program = tensor::compile(
      graph, device, {.max_rows = 4, .precision = precision, .mode = mode, .queue = std::move(queue)});
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

void fill(tensor::Program& program, std::uint64_t stream) {
  Rng rng(3, stream);
  const tensor::BatchMemory batch = program.batch();
  for (float& x : batch.inputs) x = rng.normal();
  for (std::int32_t& l : batch.labels) l = static_cast<std::int32_t>(rng.below(3));
}

class GpuStateTest : public ::testing::Test {
 protected:
  GpuStateTest() {
    const bool real = cuda::on_real_gpu();
    if (!real) {
      cuda::fake().reset();
      cuda::fake().control().multiprocessors = 1;
    }
    auto device = tensor::open_gpu_device({.ordinal = 0,
                                           .driver = cuda::test_driver(),
                                           .cublaslt = real ? "" : binary_path(PACELINE_FAKE_CUBLASLT)});
    EXPECT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    queue_ = *device_->open_queue();
    program_ = compile_on(*device_, queue_);
    elements_ = program_->parameters().elements;
  }

  // A state with the program's initial weights.
  std::unique_ptr<DeviceState> begin(const v1::OptimizerSpec& spec) {
    auto state = make_gpu_state(*device_, queue_, spec, program_->parameters());
    EXPECT_TRUE(state.ok()) << state.status();
    host_ = std::make_unique<Optimizer>(*Optimizer::create(spec, program_->parameters()));
    weights_.assign(elements_, 0);
    program_->initialize(11, weights_);
    EXPECT_TRUE((*state)->upload(host(), 0).ok());
    EXPECT_TRUE(program_->bind_on_device((*state)->vectors()).ok());
    return *std::move(state);
  }
  HostVectors host() { return {weights_, host_->state()}; }

  // The gradient of a batch into the state's.
  double pass(std::uint64_t batch) {
    fill(*program_, batch);
    double loss = 0;
    const absl::Status passed = program_->pass(
        4, 0.25F, false,
        [&](const tensor::ForwardResult& result) {
          loss = result.loss_sum;
          return absl::OkStatus();
        },
        nullptr);
    EXPECT_TRUE(passed.ok()) << passed;
    return loss;
  }
  std::vector<float> gradient(DeviceState& state) {
    std::vector<float> values(elements_);
    tensor::Queue& queue = state.queue();
    EXPECT_TRUE(queue.download(std::as_writable_bytes(std::span(values)), state.vectors().gradients).ok());
    EXPECT_TRUE(queue.set_mark(tensor::kMarksOfExchange).ok());
    EXPECT_TRUE(queue.wait_for_mark(tensor::kMarksOfExchange).ok());
    return values;
  }
  void download(DeviceState& state) {
    EXPECT_TRUE(state.begin_download(host()).ok());
    EXPECT_TRUE(state.finish_download().ok());
  }

  std::unique_ptr<tensor::Device> device_;
  std::shared_ptr<tensor::Queue> queue_;
  std::unique_ptr<tensor::Program> program_;
  std::size_t elements_ = 0;
  std::unique_ptr<Optimizer> host_;  // for its state's memory
  std::vector<float> weights_;
};

class GpuStepsTest : public GpuStateTest, public ::testing::WithParamInterface<v1::OptimizerSpec> {};

// The host's optimizer gets the gradients that the GPU computed: the same bits come of them.
TEST_P(GpuStepsTest, AreThoseOfTheHost) {
  if (tensor::cpu::kernels().level == SimdLevel::kPortable)
    GTEST_SKIP() << "this processor has no fused multiply-add that we use";
  const auto state = begin(GetParam());
  Optimizer twin = *Optimizer::create(GetParam(), program_->parameters());
  std::vector<float> weights = weights_;
  for (std::uint64_t step = 1; step <= 4; ++step) {
    EXPECT_GT(pass(step), 0);
    ASSERT_TRUE(twin.step(weights, gradient(*state), 0.1).ok());
    ASSERT_TRUE(state->update(0.1).ok());
    EXPECT_EQ(state->steps(), static_cast<std::int64_t>(step));
  }
  ASSERT_TRUE(state->check().ok());
  EXPECT_EQ(*state->hash(), vector_hash(weights));
  download(*state);
  EXPECT_EQ(weights_, weights);
  ASSERT_EQ(host_->state().size(), twin.state().size());
  for (std::size_t i = 0; i < twin.state().size(); ++i) {
    EXPECT_THAT(host_->state()[i].values, ::testing::ElementsAreArray(twin.state()[i].values));
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, GpuStepsTest,
                         ::testing::Values(spec_of(Type::SGD), spec_of(Type::ADAM), spec_of(Type::ADAMW),
                                           spec_of(Type::ADAGRAD)));

// Goes on where another left off, the number of its steps included: Adam's corrections depend on it.
TEST_F(GpuStateTest, GoesOnFromWhatTheHostHas) {
  const v1::OptimizerSpec spec = spec_of(Type::ADAM);
  const auto straight = begin(spec);
  for (std::uint64_t step = 1; step <= 4; ++step) {
    pass(step);
    ASSERT_TRUE(straight->update(0.1).ok());
  }
  const std::uint64_t hash = *straight->hash();

  auto first = begin(spec);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    pass(step);
    ASSERT_TRUE(first->update(0.1).ok());
  }
  download(*first);
  const auto second = make_gpu_state(*device_, queue_, spec, program_->parameters());
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE((*second)->upload(host(), first->steps()).ok());
  ASSERT_TRUE(program_->bind_on_device((*second)->vectors()).ok());
  first.reset();
  for (std::uint64_t step = 3; step <= 4; ++step) {
    pass(step);
    ASSERT_TRUE((*second)->update(0.1).ok());
  }
  EXPECT_EQ(*(*second)->hash(), hash);
}

// Steps that are added before a download is finished do not reach what it gives.
TEST_F(GpuStateTest, ADownloadIsOfTheMomentThatItBegan) {
  const auto state = begin(spec_of(Type::ADAMW));
  pass(1);
  ASSERT_TRUE(state->update(0.1).ok());
  const std::uint64_t then = *state->hash();
  ASSERT_TRUE(state->begin_download(host()).ok());
  for (std::uint64_t step = 2; step <= 5; ++step) {
    pass(step);
    ASSERT_TRUE(state->update(0.1).ok());
  }
  EXPECT_NE(*state->hash(), then);
  ASSERT_TRUE(state->finish_download().ok());
  EXPECT_EQ(vector_hash(weights_), then);
}

TEST_F(GpuStateTest, AGradientThatIsNotFiniteChangesNothingAndIsTold) {
  const auto state = begin(spec_of(Type::SGD, 1));
  pass(1);
  ASSERT_TRUE(state->update(0.1).ok());
  const std::uint64_t before = *state->hash();
  std::vector<float> bad(elements_, std::numeric_limits<float>::infinity());
  ASSERT_TRUE(queue_->upload(state->vectors().gradients, std::as_bytes(std::span(bad))).ok());
  ASSERT_TRUE(state->update(0.1).ok());
  EXPECT_EQ(*state->hash(), before);
  for (const absl::Status& told : {state->check(), state->update(0.1), state->check()}) {
    EXPECT_EQ(told.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(told.message()), HasSubstr("inf at optimizer step 2"));
  }
  EXPECT_EQ(*state->hash(), before);
}

// On the GPU of the tests a microsecond is a piece of work, marks among them.
TEST_F(GpuStateTest, HowLongAStepTakesIsMeasured) {
  if (cuda::on_real_gpu()) GTEST_SKIP() << "a test of the emulated GPU";
  const auto took = [&](double clip_norm) {
    const auto state = begin(spec_of(Type::SGD, clip_norm));
    for (std::uint64_t step = 1; step <= 3; ++step) {
      pass(step);
      for (int i = 0; i < 100; ++i)
        EXPECT_TRUE(queue_->copy(state->vectors().weights, state->vectors().weights, 4).ok());
      EXPECT_TRUE(state->update(0.1).ok());
    }
    EXPECT_TRUE(state->check().ok());
    pass(4);
    EXPECT_GT(queue_->timer().last().passes, Duration());
    return queue_->timer().last().update;
  };
  EXPECT_EQ(took(0), std::chrono::microseconds(2)) << "one kernel";
  EXPECT_EQ(took(1), std::chrono::microseconds(4)) << "the norm's two, too";
}

// A large gradient is cut down by its norm, up to the order of the norm's sum as the host cuts it.
TEST_F(GpuStateTest, ClipsByTheNorm) {
  const auto state = begin(spec_of(Type::SGD, 0.01));
  Optimizer twin = *Optimizer::create(spec_of(Type::SGD, 0.01), program_->parameters());
  std::vector<float> weights = weights_;
  pass(1);
  const auto report = twin.step(weights, gradient(*state), 0.1);
  ASSERT_TRUE(report.ok() && report->clipped);
  ASSERT_TRUE(state->update(0.1).ok());
  download(*state);
  for (std::size_t i = 0; i < elements_; ++i) EXPECT_NEAR(weights_[i], weights[i], 1e-7F) << i;
}

// Programs of one queue see each other's work: what is evaluated are the weights of the last step.
TEST_F(GpuStateTest, AnotherProgramOfTheQueueReadsTheSameWeights) {
  const auto state = begin(spec_of(Type::SGD));
  const auto evaluation = compile_on(*device_, queue_, tensor::Mode::kInference);
  tensor::DeviceVectors vectors = state->vectors();
  vectors.gradients = nullptr;
  ASSERT_TRUE(evaluation->bind_on_device(vectors).ok());
  const auto loss = [&] {
    fill(*evaluation, 9);
    return evaluation->forward(4)->loss_sum;
  };
  double before = loss();
  for (std::uint64_t step = 1; step <= 3; ++step) {
    pass(9);
    ASSERT_TRUE(state->update(0.1).ok());
    const double after = loss();
    EXPECT_LT(after, before);
    before = after;
  }
  download(*state);
  const auto on_host = tensor::make_cpu_device({1});
  const auto cpu = compile_on(*on_host, nullptr);
  std::vector<float> gradients(elements_);
  cpu->bind(weights_, gradients);
  fill(*cpu, 9);
  EXPECT_NEAR(cpu->forward(4)->loss_sum, before, 1e-5);
}

// What a program is bound to may change from the device's vectors to the host's and back.
TEST_F(GpuStateTest, AProgramGoesBackToTheHostsVectors) {
  const auto state = begin(spec_of(Type::SGD));
  const double on_device = pass(1);
  const std::vector<float> expected = gradient(*state);
  std::vector<float> gradients(elements_, 7);
  program_->bind(weights_, gradients);
  EXPECT_EQ(pass(1), on_device);
  EXPECT_EQ(gradients, expected);
  ASSERT_TRUE(program_->bind_on_device(state->vectors()).ok());
  EXPECT_EQ(pass(1), on_device);
  EXPECT_EQ(gradient(*state), expected);
}

// A program whose products take bf16 weights.
class GpuHalfWeightsTest : public GpuStateTest {
 protected:
  GpuHalfWeightsTest() {
    program_ = nullptr;
    queue_ = *device_->open_queue();
    program_ = compile_half(queue_);
  }
  std::unique_ptr<tensor::Program> compile_half(std::shared_ptr<tensor::Queue> queue,
                                                tensor::Mode mode = tensor::Mode::kTraining) {
    return compile_on(*device_, std::move(queue), mode, tensor::Precision::kBF16);
  }
  // Of all that was added so far.
  std::size_t conversions() {
    EXPECT_TRUE(queue_->set_mark(tensor::kMarksOfExchange).ok());
    EXPECT_TRUE(queue_->wait_for_mark(tensor::kMarksOfExchange).ok());
    return cuda::fake().runs_of("narrow");
  }
  // Of one pass: its inputs', and those of weights.
  std::size_t conversions_of_pass(std::uint64_t batch) {
    const std::size_t before = conversions();
    pass(batch);
    return conversions() - before;
  }
  // Loss and gradient of what the host has, by a program of a queue of its own.
  double pass_on_host(std::uint64_t batch, std::vector<float>& gradients) {
    const auto other = compile_half(nullptr);
    gradients.assign(elements_, 0);
    other->bind(weights_, gradients);
    fill(*other, batch);
    const auto result = other->forward(4);
    EXPECT_TRUE(result.ok() && other->backward(0.25F, false, nullptr).ok());
    return result->loss_sum;
  }
};

TEST_F(GpuHalfWeightsTest, StepsWriteThem) {
  for (const auto& spec : {spec_of(Type::SGD), spec_of(Type::ADAMW), spec_of(Type::ADAGRAD, 1e-3)}) {
    const auto state = begin(spec);
    const std::size_t first = cuda::on_real_gpu() ? 0 : conversions_of_pass(1);
    pass(1);
    for (std::uint64_t step = 2; step <= 4; ++step) {
      ASSERT_TRUE(state->update(0.1).ok());
      if (!cuda::on_real_gpu()) {
        const std::size_t after_update = conversions_of_pass(step);
        EXPECT_LT(after_update, first) << "the first pass converts the weights";
        EXPECT_EQ(after_update, conversions_of_pass(step)) << "what no step came before converts none";
      }
      const double loss = pass(step);
      const std::vector<float> gradients = gradient(*state);
      download(*state);
      std::vector<float> expected;
      EXPECT_EQ(loss, pass_on_host(step, expected));
      EXPECT_EQ(gradients, expected);
    }
  }
}

TEST_F(GpuHalfWeightsTest, AreSharedByTheProgramsOfAQueue) {
  const auto evaluation = compile_half(queue_, tensor::Mode::kInference);
  EXPECT_EQ(evaluation->memory()->half_weights, elements_ * 2);
  const auto state = begin(spec_of(Type::SGD));
  EXPECT_EQ(program_->memory()->half_weights, elements_ * 2);
  tensor::DeviceVectors vectors = state->vectors();
  vectors.gradients = nullptr;
  ASSERT_TRUE(evaluation->bind_on_device(vectors).ok());
  fill(*evaluation, 3);
  for (int step = 0; step < 3; ++step) {
    const double trained = pass(3);
    const std::size_t before = cuda::on_real_gpu() ? 0 : conversions();
    EXPECT_EQ(evaluation->forward(4)->loss_sum, trained);
    if (!cuda::on_real_gpu()) {
      EXPECT_EQ(conversions() - before, 1U) << "the inputs alone";
    }
    ASSERT_TRUE(state->update(0.1).ok());
  }
}

// Weights that come from elsewhere are converted: of the host, of a state that goes on, of another state.
TEST_F(GpuHalfWeightsTest, FollowWeightsThatChangeOtherwise) {
  const auto state = begin(spec_of(Type::SGD, 1e-3));
  std::vector<float> expected;
  const auto others = [&](std::uint64_t seed) {
    program_->initialize(seed, weights_);
    return pass_on_host(1, expected);
  };
  pass(1);
  ASSERT_TRUE(state->update(0.1).ok());
  double loss = others(21);
  ASSERT_TRUE(state->upload(host(), 7).ok());
  EXPECT_EQ(pass(1), loss);
  EXPECT_EQ(gradient(*state), expected);

  loss = others(22);
  std::vector<float> gradients(elements_);
  program_->bind(weights_, gradients);
  EXPECT_EQ(pass(1), loss);
  ASSERT_TRUE(state->update(0.1).ok());  // of the state's weights: the copy is theirs now
  EXPECT_EQ(pass(1), loss);
  EXPECT_EQ(gradients, expected);

  loss = others(23);
  const auto second = make_gpu_state(*device_, queue_, spec_of(Type::SGD), program_->parameters());
  ASSERT_TRUE(second.ok() && (*second)->upload(host(), 0).ok());
  ASSERT_TRUE(program_->bind_on_device((*second)->vectors()).ok());
  EXPECT_EQ(pass(1), loss);
}

// A step that finds on the GPU that the gradient is not finite writes no copy: what was not of the state's
// weights before is not taken for theirs.
TEST_F(GpuHalfWeightsTest, AStepThatChangesNothingLeavesThem) {
  const auto state = begin(spec_of(Type::SGD, 1));
  const double loss = pass(1);
  std::vector<float> gradients(elements_), own = weights_;
  program_->initialize(31, weights_);
  program_->bind(weights_, gradients);
  EXPECT_NE(pass(1), loss);
  const std::vector<float> bad(elements_, std::numeric_limits<float>::infinity());
  ASSERT_TRUE(queue_->upload(state->vectors().gradients, std::as_bytes(std::span(bad))).ok());
  ASSERT_TRUE(state->update(0.1).ok());
  ASSERT_TRUE(program_->bind_on_device(state->vectors()).ok());
  EXPECT_EQ(pass(1), loss);
  EXPECT_FALSE(state->check().ok());
}

TEST_F(GpuStateTest, ProgramsOfFp32HaveNoHalfWeights) {
  const auto state = begin(spec_of(Type::ADAM));
  pass(1);
  ASSERT_TRUE(state->update(0.1).ok());
  EXPECT_EQ(program_->memory()->half_weights, 0U);
}

TEST(DeviceVectors, AreRefusedWhereTheMemoryIsTheHosts) {
  const auto device = tensor::make_cpu_device({1});
  const auto program = compile_on(*device, nullptr);
  EXPECT_EQ(program->bind_on_device({}).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace paceline::optimizer
