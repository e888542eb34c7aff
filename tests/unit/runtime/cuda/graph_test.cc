#include "runtime/cuda/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>

#include "base/status.h"
#include "runtime/cuda/elementwise.h"
#include "tests/support/fake_cuda/gpu_test.h"

namespace paceline::cuda {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t kCount = 100;
constexpr std::size_t kBytes = kCount * sizeof(float);

class GraphTest : public GpuTest {
 protected:
  GraphTest()
      : from_(must(PinnedBuffer::create(context_, kBytes))),
        there_(array<float>(kCount)),
        kernels_(must(Elementwise::load(context_))) {
    std::ranges::fill(from_->as<float>(), 1.0F);
  }
  void TearDown() override {
    graph_.reset();
    from_.reset();
    there_.reset();
    kernels_.reset();
    GpuTest::TearDown();
  }

  // Doubles what is brought from the host, `times` times.
  absl::Status add(int times = 2) {
    PL_RETURN_IF_ERROR(stream_->to_device(there_->data(), from_->bytes()));
    for (int i = 0; i < times; ++i) {
      PL_RETURN_IF_ERROR(
          kernels_->add(*stream_, DType::kF32, there_->data(), there_->data(), there_->data(), kCount));
    }
    return absl::OkStatus();
  }
  // Why a graph of it is none.
  std::string refused(const std::function<absl::Status()>& extra) {
    const auto graph = Graph::record(*stream_, [&]() -> absl::Status {
      PL_RETURN_IF_ERROR(add());
      extra().IgnoreError();
      return add();
    });
    EXPECT_FALSE(graph.ok());
    return std::string(graph.status().message());
  }
  void expect_stream_goes_on() {
    ASSERT_TRUE(add(1).ok());
    EXPECT_THAT(download(*there_), Each(2.0F));
  }

  std::optional<PinnedBuffer> from_;
  std::optional<DeviceArray<float>> there_;
  std::optional<Elementwise> kernels_;
  std::optional<Graph> graph_;
};

TEST_F(GraphTest, IsDoneWhenItIsLaunchedAsOftenAsItIs) {
  ASSERT_TRUE(stream_->clear(there_->data(), kBytes).ok());
  graph_.emplace(must(Graph::record(*stream_, [&] { return add(); })));
  EXPECT_THAT(download(*there_), Each(0.0F)) << "what is recorded is not done";
  for (const float value : {1.0F, 3.0F}) {
    std::ranges::fill(from_->as<float>(), value);  // read when its turn comes
    ASSERT_TRUE(graph_->launch(*stream_).ok());
    EXPECT_THAT(download(*there_), Each(4 * value));
  }
  ASSERT_TRUE(graph_->launch(*stream_).ok());
  ASSERT_TRUE(
      kernels_->add(*stream_, DType::kF32, there_->data(), there_->data(), there_->data(), kCount).ok());
  EXPECT_THAT(download(*there_), Each(24.0F)) << "what comes behind it";
}

TEST_F(GraphTest, OneCallAddsAllOfIt) {
  PL_EMULATED_ONLY();
  graph_.emplace(must(Graph::record(*stream_, [&] { return add(5); })));
  const std::size_t before = fake().calls_of("cuLaunchKernel"), run = fake().kernels_run();
  ASSERT_TRUE(graph_->launch(*stream_).ok());
  finish();
  EXPECT_EQ(fake().calls_of("cuLaunchKernel"), before);
  EXPECT_EQ(fake().calls_of("cuGraphLaunch"), 1U);
  EXPECT_EQ(fake().kernels_run() - run, 5U);
}

TEST_F(GraphTest, GoesOnWhenItIsGone) {
  graph_.emplace(must(Graph::record(*stream_, [&] { return add(); })));
  ASSERT_TRUE(graph_->launch(*stream_).ok());
  graph_.reset();
  EXPECT_THAT(download(*there_), Each(4.0F));
}

TEST_F(GraphTest, AnErrorOfWhatAddsEndsTheRecording) {
  const auto graph = Graph::record(*stream_, [&] {
    EXPECT_TRUE(add().ok());
    return absl::OutOfRangeError("no more");
  });
  EXPECT_EQ(graph.status(), absl::OutOfRangeError("no more"));
  expect_stream_goes_on();
}

TEST_F(GraphTest, CaptureThatAllocatesFreesOrWaitsIsNotKept) {
  PL_EMULATED_ONLY();
  const auto other = must(PinnedBuffer::create(context_, kBytes));
  auto event = must(Event::create(context_, Event::Kind::kOrder));
  const Deadline later = Deadline::after(clock_.now(), std::chrono::seconds(60));
  std::vector<float> pageable(kCount);
  const auto bytes = std::as_writable_bytes(std::span(pageable));
  const std::vector<std::function<absl::Status()>> forbidden = {
      [&] { return DeviceBuffer::create(context_, 64).status(); },
      [&] { return PinnedBuffer::create(context_, 64).status(); },
      [&] { return HostPin::create(context_, bytes).status(); },
      [&] { return stream_->finish(clock_, later); },
      [&] { return event.reached().status(); },
      [&] { return stream_->wait_for(event); },
      [&] { return stream_->to_device(there_->data(), bytes); },
      [&] { return stream_->to_host(bytes, there_->data()); },
  };
  for (std::size_t i = 0; i < forbidden.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_THAT(refused(forbidden[i]), HasSubstr("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
    expect_stream_goes_on();
  }
  EXPECT_EQ(fake().counts().graphs, 0U);
}

// Other threads work with other streams meanwhile.
TEST_F(GraphTest, OtherThreadsMayDoAsTheyLike) {
  graph_.emplace(must(Graph::record(*stream_, [&] {
    std::jthread([&] {
      EXPECT_TRUE(DeviceBuffer::create(context_, 64).ok());
      auto stream = must(Stream::create(context_));
      auto event = must(Event::create(context_, Event::Kind::kOrder));
      EXPECT_TRUE(event.record(stream).ok());
      EXPECT_TRUE(event.wait(clock_, Deadline::after(clock_.now(), std::chrono::seconds(60))).ok());
    }).join();
    return add();
  })));
  ASSERT_TRUE(graph_->launch(*stream_).ok());
  EXPECT_THAT(download(*there_), Each(4.0F));
}

TEST_F(GraphTest, EveryRefusalOfTheDriverLeavesTheStreamAsItWas) {
  PL_EMULATED_ONLY();
  for (const std::string call : {"cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags"}) {
    fake().control().fail = [&](const std::string& asked) {
      return asked == call ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    };
    const auto graph = Graph::record(*stream_, [&] { return add(); });
    EXPECT_TRUE(absl::IsResourceExhausted(graph.status())) << graph.status();
    fake().control().fail = nullptr;
    EXPECT_EQ(fake().counts().graphs, 0U);
    expect_stream_goes_on();
  }
}

}  // namespace
}  // namespace paceline::cuda
