// Passes that are recorded and launched as graphs: what is launched when, what is recorded anew, and what
// happens where there are no graphs. That their results are the same: optimizer/gpu/steps_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/gpu/gpu_device.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::tensor {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kRows = 2;
constexpr char kBegin[] = "cuStreamBeginCapture_v2";
constexpr char kInstantiate[] = "cuGraphInstantiateWithFlags";

// Of one program whose vectors are on the GPU.
class GpuGraphsTest : public ::testing::Test {
 protected:
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

  void SetUp() override {
    if (cuda::on_real_gpu()) GTEST_SKIP() << "a test of the emulated GPU";
    cuda::fake().reset();
    cuda::fake().control().multiprocessors = 1;
    open();
  }
  void TearDown() override {
    close();
    if (cuda::on_real_gpu()) return;
    EXPECT_THAT(cuda::fake().problems(), IsEmpty());
    EXPECT_EQ(cuda::fake().counts().graphs, 0U);
    cuda::fake().reset();
  }

  // Of two layers as wide as the middle is.
  void open(bool graphs = true, std::int64_t middle = 16) {
    close();
    device_ = cuda::must(open_gpu_device(
        {.driver = cuda::test_driver(),
         .cublaslt = binary_path(PACELINE_FAKE_CUBLASLT),
         .graphs = graphs,
         .no_graphs = [this](const absl::Status& why) { told_.emplace_back(why.message()); }}));
    queue_ = cuda::must(device_->open_queue());
    GraphBuilder graph;
    const Value hidden = graph.gelu(graph.dense("fc1", graph.input({1024}), middle));
    graph.softmax_cross_entropy(graph.dense("fc2", hidden, 1024));
    program_ = cuda::must(compile(graph, *device_, {.max_rows = kRows, .queue = queue_}));
    elements_ = program_->parameters().elements;
    weights_.resize(elements_);
    program_->initialize(3, weights_);
    device_weights_ = cuda::must(device_->allocate(elements_ * sizeof(float)));
    device_gradients_ = cuda::must(device_->allocate(elements_ * sizeof(float)));
    ASSERT_TRUE(queue_->upload(device_weights_->data(), std::as_bytes(std::span(weights_))).ok());
    bind();
    Rng rng(3, 1);
    for (float& x : program_->batch().inputs) x = rng.normal();
  }
  void close() {
    program_.reset();
    queue_.reset();
    device_weights_.reset();
    device_gradients_.reset();
    device_.reset();
  }
  void bind() {
    ASSERT_TRUE(program_
                    ->bind_on_device({reinterpret_cast<float*>(device_weights_->data()),
                                      reinterpret_cast<float*>(device_gradients_->data()), &version_})
                    .ok());
  }

  absl::Status try_pass(float scale = 1, const Program::OnReady& on_ready = nullptr) {
    return program_->pass(
        kRows, scale, false,
        [&](const ForwardResult& result) {
          loss_ = result.loss_sum;
          return absl::OkStatus();
        },
        on_ready);
  }
  void pass(float scale = 1) {
    const absl::Status passed = try_pass(scale);
    ASSERT_TRUE(passed.ok()) << passed;
  }
  std::vector<float> gradients() {
    std::vector<float> values(elements_);
    EXPECT_TRUE(queue_->download(std::as_writable_bytes(std::span(values)), device_gradients_->data()).ok());
    EXPECT_TRUE(queue_->set_mark(kMarksOfExchange).ok());
    EXPECT_TRUE(queue_->wait_for_mark(kMarksOfExchange).ok());
    return values;
  }
  // Of the driver, since the last question.
  std::size_t calls(const std::string& name) {
    const std::size_t all = cuda::fake().calls_of(name);
    return all - std::exchange(asked_[name], all);
  }

  std::unique_ptr<Device> device_;
  std::shared_ptr<Queue> queue_;
  std::unique_ptr<Program> program_;
  std::size_t elements_ = 0;
  std::vector<float> weights_;
  std::uint64_t version_ = 1;
  std::unique_ptr<DeviceMemory> device_weights_, device_gradients_;
  double loss_ = 0;
  std::vector<std::string> told_;  // why there are no graphs
  std::map<std::string, std::size_t> asked_;
};

TEST_F(GpuGraphsTest, APassIsTwoGraphsFromTheThirdOn) {
  pass();
  EXPECT_EQ(calls(kBegin), 0U) << "operators may allocate";
  EXPECT_GT(calls("cuLaunchKernel"), 0U);
  pass();
  EXPECT_EQ(calls(kBegin), 2U);
  EXPECT_EQ(calls(kInstantiate), 2U);
  EXPECT_EQ(calls("cuGraphLaunch"), 2U) << "that pass is one of graphs already";
  calls("cuLaunchKernel");
  calls("cuMemcpyDtoDAsync_v2");
  const std::vector<float> expected = gradients();
  const double loss = loss_;
  for (int i = 0; i < 3; ++i) {
    loss_ = 0;
    pass();
    EXPECT_EQ(calls("cuGraphLaunch"), 2U);
    EXPECT_EQ(calls("cuLaunchKernel") + calls("cuMemcpyDtoDAsync_v2") + calls(kBegin), 0U);
    EXPECT_EQ(loss_, loss);
    EXPECT_EQ(gradients(), expected);
  }
  EXPECT_THAT(told_, IsEmpty());
}

// The host hears of the forward pass while the backward pass goes on: the emulated GPU does no more than it
// is asked for.
TEST_F(GpuGraphsTest, TheResultIsThereBeforeTheBackwardPassIsDone) {
  for (int i = 0; i < 4; ++i) {
    const std::size_t before = cuda::fake().kernels_run();
    pass();
    const std::size_t heard = cuda::fake().kernels_run() - before;
    gradients();
    const std::size_t all = cuda::fake().kernels_run() - before;
    EXPECT_LT(heard, all) << i;
  }
}

TEST_F(GpuGraphsTest, RangesAreToldBehindGraphsOfTheirOwn) {
  open(true, 1100);  // 4.3 MiB of weights in each layer
  Ranges ranges;
  std::vector<std::vector<float>> seen;
  const auto on_ready = [&](std::size_t begin, std::size_t end) {
    ranges.emplace_back(begin, end);
    // What another queue sees that follows this point.
    seen.emplace_back(end - begin);
    const auto other = cuda::must(device_->open_queue());
    EXPECT_TRUE(queue_->set_mark(kMarksOfExchange).ok());
    EXPECT_TRUE(other->follow(*queue_, kMarksOfExchange).ok());
    EXPECT_TRUE(other
                    ->download(std::as_writable_bytes(std::span(seen.back())),
                               reinterpret_cast<float*>(device_gradients_->data()) + begin)
                    .ok());
  };
  pass();
  const std::vector<float> expected = gradients();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(queue_->clear(device_gradients_->data(), elements_ * sizeof(float)).ok());
    ranges.clear();
    seen.clear();
    calls("cuGraphLaunch");
    const absl::Status passed = try_pass(1, on_ready);
    ASSERT_TRUE(passed.ok()) << passed;
    EXPECT_EQ(calls("cuGraphLaunch"), i == 0 ? 1U : 3U) << "forward, and what makes each layer's gradient";
    ASSERT_THAT(ranges, SizeIs(2));
    EXPECT_EQ(ranges[0].second, elements_);
    EXPECT_EQ(ranges[0].first, ranges[1].second);
    EXPECT_EQ(ranges[1].first, 0U);
    for (std::size_t r = 0; r < 2; ++r) {
      EXPECT_EQ(seen[r],
                std::vector<float>(expected.begin() + static_cast<std::ptrdiff_t>(ranges[r].first),
                                   expected.begin() + static_cast<std::ptrdiff_t>(ranges[r].second)));
    }
  }
  calls("cuLaunchKernel");
  ASSERT_TRUE(try_pass(1, on_ready).ok());
  EXPECT_EQ(calls("cuLaunchKernel"), 0U);
}

TEST_F(GpuGraphsTest, NewBindingIsRecordedAnew) {
  pass();
  pass();
  EXPECT_EQ(cuda::fake().counts().graphs, 2U);
  const std::vector<float> expected = gradients();
  auto moved = cuda::must(device_->allocate(elements_ * sizeof(float)));
  std::swap(device_gradients_, moved);
  bind();
  EXPECT_EQ(cuda::fake().counts().graphs, 0U);
  moved.reset();  // what a graph of before would write to
  for (int i = 0; i < 3; ++i) {
    pass();
    EXPECT_EQ(gradients(), expected);
  }
  EXPECT_EQ(cuda::fake().counts().graphs, 2U);
}

TEST_F(GpuGraphsTest, ScalesThatNeverComeAgainAreNotRecorded) {
  for (int i = 1; i <= 20; ++i) pass(1.0F / static_cast<float>(i));
  EXPECT_EQ(calls(kBegin), 0U);
  for (int i = 1; i <= 20; ++i) {
    pass(static_cast<float>(i));
    const std::vector<float> plain = gradients();
    pass(static_cast<float>(i));
    EXPECT_EQ(gradients(), plain) << "that scale's own";
    EXPECT_LE(cuda::fake().counts().graphs, 16U);
  }
  EXPECT_EQ(calls(kBegin), 40U);
}

TEST_F(GpuGraphsTest, AnObserverHearsOfEveryOperation) {
  struct Count final : OperationObserver {
    void begin() override {}
    void end(std::string_view, std::string_view) override { ++heard; }
    int heard = 0;
  } count;
  for (int i = 0; i < 3; ++i) pass();
  const std::vector<float> expected = gradients();
  calls("cuGraphLaunch");
  program_->observe(&count);
  pass();
  EXPECT_EQ(calls("cuGraphLaunch"), 0U);
  EXPECT_EQ(gradients(), expected);
  EXPECT_GT(count.heard, 4);
  program_->observe(nullptr);
  pass();
  EXPECT_EQ(calls("cuGraphLaunch"), 2U);
}

TEST_F(GpuGraphsTest, CanBeOff) {
  open(false);
  for (int i = 0; i < 3; ++i) pass();
  EXPECT_EQ(calls(kBegin) + calls("cuGraphLaunch"), 0U);
  EXPECT_THAT(told_, IsEmpty());
}

// A driver that makes no graphs is asked once.
TEST_F(GpuGraphsTest, PassIsPlainWhenTheDriverMakesNoGraphs) {
  pass();
  const std::vector<float> expected = gradients();
  for (const std::string call : {kBegin, kInstantiate}) {
    SCOPED_TRACE(call);
    open();
    told_.clear();
    cuda::fake().control().fail = [&](const std::string& asked) {
      return asked == call ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
    };
    calls(call);
    for (int i = 0; i < 4; ++i) {
      pass();
      EXPECT_EQ(gradients(), expected);
    }
    EXPECT_EQ(calls(call), 1U);
    EXPECT_THAT(told_, SizeIs(1));
    EXPECT_THAT(told_, Each(HasSubstr("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")));
    cuda::fake().control().fail = nullptr;
  }
}

// An operation that fails while it is recorded fails as it does without, and what comes after it is done.
TEST_F(GpuGraphsTest, AnOperationsOwnErrorIsItsOwn) {
  pass();
  const std::vector<float> expected = gradients();
  cuda::fake().control().fail = [](const std::string& asked) {
    return asked == "cuLaunchKernel" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  };
  const absl::Status failed = try_pass();
  cuda::fake().control().fail = nullptr;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("CUDA_ERROR_INVALID_VALUE"));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("gelu"));
  EXPECT_THAT(told_, IsEmpty());
  for (int i = 0; i < 3; ++i) {
    pass();
    EXPECT_EQ(gradients(), expected);
  }
}

}  // namespace
}  // namespace paceline::tensor
