// Passes of programs whose vectors stay on the GPU, against the same passes of vectors of the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/gpu/gpu_device.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::tensor {
namespace {

constexpr std::int64_t kPassRows = 6;
constexpr std::uint64_t kSeed = 5;
constexpr std::int32_t kVocabulary = 11;

// A small language model: tokens go to the GPU in a batch, and, in an order of the host's, in a plan.
void language_model(GraphBuilder& graph) {
  const Value x =
      graph.embedding(graph.tokens(4), graph.parameter("wte", {kVocabulary, 8}, {Init::Kind::kNormal, 0.5F}));
  graph.softmax_cross_entropy(graph.dense("head", graph.gelu(graph.dense("fc", x, 16)), kVocabulary));
}

class GpuPassesTest : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    const bool real = cuda::on_real_gpu();
    if (!real) {
      cuda::fake().reset();
      cuda::fake().control().multiprocessors = 1;
    }
    device_ = cuda::must(open_gpu_device(
        {.driver = cuda::test_driver(), .cublaslt = real ? "" : binary_path(PACELINE_FAKE_CUBLASLT)}));
    queue_ = cuda::must(device_->open_queue());
    program_ = compiled(queue_);
    elements_ = program_->parameters().elements;
    weights_.resize(elements_);
    program_->initialize(kSeed, weights_);
  }
  void TearDown() override {
    program_.reset();
    queue_.reset();
    device_weights_.reset();
    device_gradients_.reset();
    device_.reset();
    if (!cuda::on_real_gpu()) {
      EXPECT_THAT(cuda::fake().problems(), ::testing::IsEmpty());
      cuda::fake().reset();
    }
  }

  std::unique_ptr<Program> compiled(std::shared_ptr<Queue> queue) {
    GraphBuilder graph;
    language_model(graph);
    return cuda::must(compile(graph, *device_,
                              {.max_rows = kPassRows, .precision = GetParam(), .queue = std::move(queue)}));
  }
  void bind_on_device() {
    ASSERT_TRUE(device_->enter().ok());
    device_weights_ = cuda::must(device_->allocate(elements_ * sizeof(float)));
    device_gradients_ = cuda::must(device_->allocate(elements_ * sizeof(float)));
    ASSERT_TRUE(queue_->upload(device_weights_->data(), std::as_bytes(std::span(weights_))).ok());
    ASSERT_TRUE(program_
                    ->bind_on_device({reinterpret_cast<float*>(device_weights_->data()),
                                      reinterpret_cast<float*>(device_gradients_->data()), &version_})
                    .ok());
  }

  static void fill(Program& program, std::uint64_t number, std::int64_t rows) {
    Rng rng(kSeed, number);
    const BatchMemory batch = program.batch();
    const auto some = [rows](std::span<std::int32_t> all) {
      return all.first(all.size() / kPassRows * static_cast<std::size_t>(rows));
    };
    for (std::int32_t& t : some(batch.tokens)) t = static_cast<std::int32_t>(rng.below(kVocabulary));
    for (std::int32_t& l : some(batch.labels)) l = static_cast<std::int32_t>(rng.below(kVocabulary));
  }
  static double pass(Program& program, std::int64_t rows, bool accumulate) {
    double loss_sum = 0;
    const absl::Status passed = program.pass(
        rows, 0.125F, accumulate,
        [&](const ForwardResult& result) {
          loss_sum = result.loss_sum;
          return absl::OkStatus();
        },
        nullptr);
    EXPECT_TRUE(passed.ok()) << passed;
    return loss_sum;
  }
  std::vector<float> device_gradients() {
    std::vector<float> values(elements_);
    EXPECT_TRUE(queue_->download(std::as_writable_bytes(std::span(values)), device_gradients_->data()).ok());
    EXPECT_TRUE(queue_->set_mark(kMarksOfExchange).ok());
    EXPECT_TRUE(queue_->wait_for_mark(kMarksOfExchange).ok());
    return values;
  }

  std::unique_ptr<Device> device_;
  std::shared_ptr<Queue> queue_;
  std::unique_ptr<Program> program_;
  std::size_t elements_ = 0;
  std::vector<float> weights_;
  std::uint64_t version_ = 1;
  std::unique_ptr<DeviceMemory> device_weights_, device_gradients_;
};

// On the GPU of the tests a microsecond is a piece of work.
TEST_P(GpuPassesTest, HowLongTheyTakeIsTheirOwnWork) {
  if (cuda::on_real_gpu()) GTEST_SKIP() << "a test of the emulated GPU";
  constexpr int kSteps = 6;  // that the last one that is read is of these
  const auto sums = std::make_shared<DeviceTimer::Sums>();
  queue_->timer().collect_into(sums);
  bind_on_device();
  const std::size_t events = cuda::fake().counts().events;
  const auto step = [&](int between, const Program::OnReady& on_ready = nullptr) {
    for (int i = 0; i < between; ++i) EXPECT_TRUE(queue_->clear(device_gradients_->data(), 4).ok());
    fill(*program_, 1, kPassRows);
    EXPECT_TRUE(
        program_
            ->pass(
                kPassRows, 0.125F, false, [](const ForwardResult&) { return absl::OkStatus(); }, on_ready)
            .ok());
  };
  for (int i = 0; i < kSteps; ++i) step(0);
  const DeviceTimes usual = queue_->timer().last();
  EXPECT_GT(usual.passes, std::chrono::microseconds(10));
  EXPECT_EQ(usual.update, Duration());
  const std::size_t made = cuda::fake().counts().events - events;
  EXPECT_GE(made, 2 * DeviceTimer::kIntervals);
  for (int i = 0; i < kSteps; ++i) step(100);
  EXPECT_EQ(queue_->timer().last(), usual) << "what lies between passes is not in them";
  // What goes to the host meanwhile is: that is the order of the stream.
  std::vector<float> values(elements_);
  const Program::OnReady download = [&](std::size_t begin, std::size_t end) {
    EXPECT_TRUE(queue_
                    ->download(std::as_writable_bytes(std::span(values).subspan(begin, end - begin)),
                               reinterpret_cast<float*>(device_gradients_->data()) + begin)
                    .ok());
  };
  for (int i = 0; i < kSteps; ++i) step(0, download);
  EXPECT_GT(queue_->timer().last().passes, usual.passes);
  EXPECT_LT(queue_->timer().last().passes, usual.passes + std::chrono::microseconds(10));
  EXPECT_EQ(cuda::fake().counts().events - events, made) << "all are there after the first";
  ASSERT_TRUE(program_->forward(kPassRows).ok());
  const std::int64_t told = sums->lock()->steps;
  ASSERT_TRUE(program_->forward(kPassRows).ok());
  EXPECT_EQ(sums->lock()->steps, told) << "an evaluation is no step";
  EXPECT_EQ(sums->lock()->not_measured, 0);
}

// The host fills the next batch as soon as a pass returns, whatever the GPU still does of it: what is added
// up over all of them is looked at alone.
TEST_P(GpuPassesTest, BatchesThatFollowEachOtherAtOnceAreTakenAsTheyWere) {
  const std::vector<std::int64_t> rows = {kPassRows, kPassRows, 2, kPassRows, 1, kPassRows};
  std::vector<double> losses;
  std::vector<float> gradients(elements_);
  {
    const auto twin = compiled(nullptr);
    twin->bind(weights_, gradients);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      fill(*twin, i, rows[i]);
      losses.push_back(pass(*twin, rows[i], i > 0));
    }
  }
  bind_on_device();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    fill(*program_, i, rows[i]);
    EXPECT_EQ(pass(*program_, rows[i], i > 0), losses[i]) << "batch " << i;
    std::ranges::fill(program_->batch().labels, 0);
    std::ranges::fill(program_->batch().tokens, 0);
  }
  EXPECT_EQ(device_gradients(), gradients);
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuPassesTest, ::testing::Values(Precision::kF32, Precision::kBF16),
                         [](const auto& info) { return info.param == Precision::kF32 ? "Fp32" : "Bf16"; });

}  // namespace
}  // namespace paceline::tensor
