#include "runtime/cuda/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/support/fake_clock.h"
#include "tests/support/fake_cuda/gpu_test.h"

namespace paceline::cuda {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class StreamTest : public GpuTest {
 protected:
  std::vector<int> read(PinnedBuffer& pinned) {
    const std::span<int> values = pinned.as<int>();
    return {values.begin(), values.end()};
  }
  static void fill(PinnedBuffer& pinned, int value) { std::ranges::fill(pinned.as<int>(), value); }
  static constexpr std::size_t kBytes = 100 * sizeof(int);
};

TEST_F(StreamTest, CopiesGoThereAndBack) {
  const std::vector<int> values{1, 2, 3, 4, 5};
  const auto there = upload(values);
  auto again = array<int>(values.size());
  ASSERT_TRUE(stream_->copy(again.data(), there.data(), values.size() * sizeof(int)).ok());
  EXPECT_EQ(download(again), values);
  ASSERT_TRUE(stream_->clear(again.data(), 2 * sizeof(int)).ok());
  EXPECT_EQ(download(again), (std::vector<int>{0, 0, 3, 4, 5}));
}

TEST_F(StreamTest, NothingIsCopiedFromNowhere) {
  EXPECT_TRUE(stream_->to_device(nullptr, {}).ok());
  EXPECT_TRUE(stream_->to_host({}, nullptr).ok());
  EXPECT_TRUE(stream_->copy(nullptr, nullptr, 0).ok());
  EXPECT_TRUE(stream_->clear(nullptr, 0).ok());
}

TEST_F(StreamTest, PinnedMemoryIsReadWhenTheCopysTurnComes) {
  auto from = must(PinnedBuffer::create(context_, kBytes)), to = must(PinnedBuffer::create(context_, kBytes));
  const auto there = array<int>(100);
  fill(from, 1);
  fill(to, 0);
  ASSERT_TRUE(stream_->to_device(there.data(), from.bytes()).ok());
  ASSERT_TRUE(stream_->to_host(to.bytes(), there.data()).ok());
  EXPECT_THAT(read(to), Each(0));  // not waited for
  fill(from, 2);
  finish();
  EXPECT_THAT(read(to), Each(2));
}

TEST_F(StreamTest, MemoryThatTheHostPinsIsToo) {
  std::vector<int> from(100, 1), to(100, 0);
  const auto bytes = std::as_writable_bytes(std::span(from));
  const auto there = array<int>(100);
  {
    const auto pinned = must(HostPin::create(context_, bytes));
    const auto pinned_too = must(HostPin::create(context_, std::as_writable_bytes(std::span(to))));
    EXPECT_EQ(fake().counts().pinned, 2U);
    EXPECT_TRUE(absl::IsAlreadyExists(HostPin::create(context_, bytes.subspan(8, 4)).status()));
    ASSERT_TRUE(stream_->to_device(there.data(), bytes).ok());
    ASSERT_TRUE(stream_->to_host(std::as_writable_bytes(std::span(to)).first(200), there.data()).ok());
    std::ranges::fill(from, 2);
    EXPECT_THAT(to, Each(0));
    finish();
    EXPECT_EQ(to[49], 2);
    EXPECT_EQ(to[50], 0);
  }
  EXPECT_EQ(fake().counts().pinned, 0U);
  const auto again = must(HostPin::create(context_, bytes));
  const auto nothing = must(HostPin::create(context_, {}));
}

TEST_F(StreamTest, StreamsRunBesideEachOtherUntilOneWaits) {
  auto other = must(Stream::create(context_));
  auto from = must(PinnedBuffer::create(context_, kBytes)), to = must(PinnedBuffer::create(context_, kBytes));
  const auto there = array<int>(100);
  ASSERT_TRUE(stream_->clear(there.data(), kBytes).ok());
  finish();
  fill(from, 7);
  auto copied = must(Event::create(context_, Event::Kind::kOrder));
  EXPECT_TRUE(must(copied.reached()));  // never recorded
  ASSERT_TRUE(stream_->to_device(there.data(), from.bytes()).ok());
  ASSERT_TRUE(copied.record(*stream_).ok());

  const Deadline later = Deadline::after(clock_.now(), std::chrono::seconds(60));
  ASSERT_TRUE(other.to_host(to.bytes(), there.data()).ok());
  ASSERT_TRUE(other.finish(clock_, later).ok());
  EXPECT_THAT(read(to), Each(0));

  ASSERT_TRUE(other.wait_for(copied).ok());
  ASSERT_TRUE(other.to_host(to.bytes(), there.data()).ok());
  ASSERT_TRUE(other.finish(clock_, later).ok());
  EXPECT_THAT(read(to), Each(7));
  EXPECT_TRUE(must(copied.reached()));
}

TEST_F(StreamTest, EventsTellTheGpusOwnTime) {
  auto begin = must(Event::create(context_, Event::Kind::kTiming));
  auto end = must(Event::create(context_, Event::Kind::kTiming));
  const auto there = array<int>(100);
  EXPECT_TRUE(absl::IsInternal(time_between(*context_, begin, end).status()));
  ASSERT_TRUE(begin.record(*stream_).ok());
  ASSERT_TRUE(stream_->clear(there.data(), kBytes).ok());
  ASSERT_TRUE(end.record(*stream_).ok());
  EXPECT_EQ(must(time_between(*context_, begin, end)), std::nullopt) << "not done, and nobody waits for it";
  ASSERT_TRUE(end.wait(clock_, Deadline::after(clock_.now(), std::chrono::seconds(60))).ok());
  EXPECT_EQ(must(time_between(*context_, begin, end)), std::chrono::microseconds(2));
}

TEST_F(StreamTest, EventsOfOrderTellNoTime) {
  auto begin = must(Event::create(context_, Event::Kind::kTiming));
  auto end = must(Event::create(context_, Event::Kind::kOrder));
  ASSERT_TRUE(begin.record(*stream_).ok());
  ASSERT_TRUE(end.record(*stream_).ok());
  finish();
  EXPECT_TRUE(absl::IsInternal(time_between(*context_, begin, end).status()));
  EXPECT_EQ(must(time_between(*context_, begin, begin)), Duration());
}

TEST_F(StreamTest, AWaitEndsAtItsDeadlineAndTheWorkGoesOn) {
  FakeClock clock;
  const auto there = array<int>(100);
  auto done = must(Event::create(context_, Event::Kind::kOrder));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stream_->clear(there.data(), kBytes).ok());
  ASSERT_TRUE(done.record(*stream_).ok());
  const Deadline now(clock.now());
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream_->finish(clock, now)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(done.wait(clock, now)));
  finish();
  EXPECT_TRUE(done.wait(clock, now).ok());
}

TEST_F(StreamTest, SomeGoFirst) {
  const Stream first = must(Stream::create(context_, Stream::Priority::kGreatest));
  if (on_real_gpu()) return;
  EXPECT_EQ(fake().priority(first.handle()), fake_cuda::kGreatestPriority);
  EXPECT_EQ(fake().priority(stream_->handle()), 0);
}

TEST_F(StreamTest, EveryThreadEntersTheContextItself) {
  absl::Status before, after;
  const auto there = array<int>(100);
  std::jthread([&] {
    before = stream_->clear(there.data(), kBytes);
    ASSERT_TRUE(context_->enter().ok());
    after = stream_->clear(there.data(), kBytes);
  }).join();
  EXPECT_THAT(std::string(before.message()), HasSubstr("CUDA_ERROR_INVALID_CONTEXT"));
  EXPECT_TRUE(after.ok()) << after;
  finish();
}

TEST_F(StreamTest, ACopyBeyondAnAllocationIsRefused) {
  const auto there = array<int>(3);
  EXPECT_FALSE(stream_->clear(there.data(), 13).ok());
  EXPECT_FALSE(stream_->copy(there.data() + 1, there.data(), 12).ok());
  EXPECT_EQ(fake().problems().size(), 2U);
  EXPECT_THAT(fake().problems()[0], HasSubstr("13 bytes are not of one allocation"));
  fake().forgive();
}

TEST_F(StreamTest, FailuresAreTheCallersToo) {
  const auto there = array<int>(4);
  for (const char* call :
       {"cuStreamCreate", "cuCtxGetStreamPriorityRange", "cuStreamCreateWithPriority", "cuEventCreate",
        "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async",
        "cuStreamQuery", "cuEventQuery", "cuEventRecord", "cuStreamWaitEvent"}) {
    SCOPED_TRACE(call);
    auto event = must(Event::create(context_, Event::Kind::kOrder));
    int value = 0;
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(&value, 1));
    const Deadline later = Deadline::after(clock_.now(), std::chrono::seconds(60));
    int failures = 0;
    fake().control().fail = [&](const std::string& made) {
      failures += made == call;
      return made == call ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
    };
    const std::array results{Stream::create(context_).status(),
                             Stream::create(context_, Stream::Priority::kGreatest).status(),
                             Event::create(context_, Event::Kind::kOrder).status(),
                             stream_->to_device(there.data(), bytes),
                             stream_->to_host(bytes, there.data()),
                             stream_->copy(there.data() + 1, there.data(), 4),
                             stream_->clear(there.data(), 4),
                             event.record(*stream_),
                             event.reached().status(),
                             stream_->wait_for(event),
                             stream_->finish(clock_, later),
                             event.wait(clock_, later)};
    fake().control().fail = nullptr;
    EXPECT_GT(failures, 0);
    EXPECT_EQ(std::ranges::count_if(results, [](const absl::Status& s) { return !s.ok(); }), failures);
  }
}

}  // namespace
}  // namespace paceline::cuda
