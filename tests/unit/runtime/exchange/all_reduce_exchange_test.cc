#include "runtime/exchange/all_reduce_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <latch>
#include <mutex>
#include <thread>

#include "base/rng.h"
#include "runtime/collective/fabric.h"
#include "runtime/exchange/exchanges.h"

namespace paceline::exchange {
namespace {

using std::chrono::seconds;

const SystemClock kClock;

v1::ExchangeSpec spec_of(std::int64_t bucket_bytes, bool overlap) {
  v1::ExchangeSpec spec;
  spec.set_bucket_bytes(bucket_bytes);
  spec.set_overlap(overlap);
  spec.set_timeout_ms(30'000);
  return spec;
}

Deadline soon() {
  return Deadline::after(kClock.now(), seconds(30));
}

// Every rank in a thread of its own; `body(rank, communicator)`.
void on_ranks(int world, const std::function<void(int, collective::Communicator&)>& body) {
  auto group = collective::make_in_process_group(world, Generation{1}, kClock);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] { body(rank, *group[static_cast<std::size_t>(rank)]); });
  }
}

// Some steps over random gradients, the ranges declared in random sizes from the end to the begin; the sums
// of the last step.
std::vector<std::vector<float>> run_steps(int world, std::size_t elements, const v1::ExchangeSpec& spec) {
  std::vector<std::vector<float>> gradients(static_cast<std::size_t>(world), std::vector<float>(elements));
  on_ranks(world, [&](int rank, collective::Communicator& communicator) {
    auto& gradient = gradients[static_cast<std::size_t>(rank)];
    auto exchange = make_exchange(kAllReduce, spec, communicator, gradient, kClock);
    ASSERT_TRUE(exchange.ok()) << exchange.status();
    for (Step step = 0; step < 4; ++step) {
      Rng values(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(rank));
      Rng cuts(static_cast<std::uint64_t>(step + 10), static_cast<std::uint64_t>(rank));
      for (float& g : gradient) g = values.normal();
      ASSERT_TRUE((*exchange)->begin_step(step, {}).ok());
      for (std::size_t end = elements; end > 0;) {
        const std::size_t begin = end - std::min<std::size_t>(end, 1 + cuts.below(elements / 3 + 1));
        ASSERT_TRUE((*exchange)->range_ready(begin, end).ok());
        end = begin;
      }
      const absl::Status status = (*exchange)->finish(soon());
      ASSERT_TRUE(status.ok()) << status;
    }
  });
  return gradients;
}

TEST(AllReduceExchange, SumsAreTheSameBitsWithAndWithoutOverlapAndOnAllRanks) {
  for (const int world : {1, 2, 3, 4}) {
    for (const std::int64_t bucket_bytes : {64, 1000, 1 << 20}) {
      const auto with = run_steps(world, 5000, spec_of(bucket_bytes, true));
      const auto without = run_steps(world, 5000, spec_of(bucket_bytes, false));
      EXPECT_EQ(with, without) << world << " ranks, buckets of " << bucket_bytes;
      for (const auto& rank : with) ASSERT_EQ(rank, with.front());

      for (std::size_t e = 0; e < 5000; ++e) ASSERT_FALSE(std::isnan(with.front()[e]));
      double expected = 0;
      for (int rank = 0; rank < world; ++rank) expected += Rng(3, static_cast<std::uint64_t>(rank)).normal();
      EXPECT_NEAR(with.front()[0], expected, 1e-5);
    }
  }
}

// A communicator of "two ranks" whose collectives double the data, and which says who called it.
class Recorder final : public collective::Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 2; }
  Generation generation() const override { return {1}; }
  absl::Status all_reduce(void* data, std::size_t count, DType, collective::ReduceOp, Deadline,
                          collective::Algorithm) override {
    auto* values = static_cast<float*>(data);
    for (std::size_t i = 0; i < count; ++i) values[i] *= 2;
    const std::lock_guard lock(mutex_);
    if (!reason_.ok()) return reason_;
    calls_.push_back({values, count, std::this_thread::get_id()});
    if (called_ != nullptr) called_->count_down();
    return absl::OkStatus();
  }
  absl::Status reduce_scatter(void*, std::size_t, DType, collective::ReduceOp, Deadline) override {
    return {};
  }
  absl::Status all_gather(void*, std::size_t, DType, Deadline) override { return {}; }
  absl::Status broadcast(void*, std::size_t, DType, int, Deadline) override { return {}; }
  absl::Status barrier(Deadline) override { return {}; }
  void close(absl::Status reason) override {
    const std::lock_guard lock(mutex_);
    if (reason_.ok()) reason_ = std::move(reason);
  }
  absl::Status closed() const override {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  collective::Counters counters() const override { return {}; }

  struct Call {
    const float* data;
    std::size_t count;
    std::thread::id thread;
  };
  std::vector<Call> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::latch* called_ = nullptr;

 private:
  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  absl::Status reason_;
};

TEST(AllReduceExchange, ReducesWhileTheCallerIsStillComputing) {
  std::vector<float> gradient(64, 1);
  Recorder recorder;
  std::latch two(2);
  recorder.called_ = &two;
  auto exchange = make_exchange(kAllReduce, spec_of(64, true), recorder, gradient, kClock);
  ASSERT_TRUE(exchange.ok());
  ASSERT_TRUE((*exchange)->begin_step(0, {}).ok());
  ASSERT_TRUE((*exchange)->range_ready(32, 64).ok());
  two.wait();  // both complete buckets are reduced before the rest is declared
  recorder.called_ = nullptr;
  ASSERT_TRUE((*exchange)->range_ready(0, 32).ok());
  ASSERT_TRUE((*exchange)->finish(soon()).ok());
  EXPECT_THAT(gradient, ::testing::Each(2.0f));

  const auto calls = recorder.calls();
  ASSERT_EQ(calls.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(calls[i].data, gradient.data() + (3 - i) * 16);
  EXPECT_NE(calls[0].thread, std::this_thread::get_id());
  EXPECT_EQ(calls[3].thread, std::this_thread::get_id()) << "the last bucket is the caller's";
}

TEST(AllReduceExchange, TellsWhatIsSummedBucketByBucketOnTheCallersThread) {
  for (const bool overlap : {true, false}) {
    std::vector<float> gradient(64);
    Recorder recorder;
    auto exchange = make_exchange(kAllReduce, spec_of(64, overlap), recorder, gradient, kClock);
    ASSERT_TRUE(exchange.ok());
    std::vector<std::size_t> told;
    const auto caller = std::this_thread::get_id();
    (*exchange)->set_on_summed([&](std::size_t from) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      for (std::size_t i = from; i < gradient.size(); ++i) ASSERT_EQ(gradient[i], 2.0F) << i;
      if (told.empty() || told.back() != from) told.push_back(from);
    });
    for (Step step = 0; step < 2; ++step) {
      std::fill(gradient.begin(), gradient.end(), 1.0F);
      told.clear();
      std::latch two(2);
      recorder.called_ = overlap ? &two : nullptr;
      ASSERT_TRUE((*exchange)->begin_step(step, {}).ok());
      ASSERT_TRUE((*exchange)->range_ready(32, 64).ok());
      if (overlap) two.wait();
      recorder.called_ = nullptr;
      ASSERT_TRUE((*exchange)->range_ready(0, 32).ok());
      EXPECT_TRUE(told.empty());
      ASSERT_TRUE((*exchange)->finish(soon()).ok());
      // The thread may still have been at its second bucket, or a third, when the caller came.
      const std::vector<std::size_t> each = {48, 32, 16, 0};
      ASSERT_FALSE(told.empty());
      EXPECT_THAT(told, ::testing::ElementsAreArray(each.end() - static_cast<std::ptrdiff_t>(told.size()),
                                                    each.end()));
      EXPECT_GE(told.size(), overlap ? 2U : 4U);
    }
  }
}

TEST(AllReduceExchange, OneBucketOrNoOverlapIsReducedByTheCaller) {
  for (const auto& [bytes, overlap] : {std::pair{1 << 20, true}, {64, false}}) {
    std::vector<float> gradient(64, 1);
    Recorder recorder;
    auto exchange = make_exchange(kAllReduce, spec_of(bytes, overlap), recorder, gradient, kClock);
    ASSERT_TRUE(exchange.ok());
    ASSERT_TRUE((*exchange)->begin_step(0, {}).ok());
    ASSERT_TRUE((*exchange)->range_ready(0, 64).ok());
    ASSERT_TRUE((*exchange)->finish(soon()).ok());
    for (const auto& call : recorder.calls()) EXPECT_EQ(call.thread, std::this_thread::get_id());
    EXPECT_EQ(recorder.calls().size(), overlap ? 1u : 4u);
  }
}

TEST(AllReduceExchange, AnIncompleteStepIsRefused) {
  std::vector<float> gradient(64, 1);
  Recorder recorder;
  auto exchange = make_exchange(kAllReduce, spec_of(64, true), recorder, gradient, kClock);
  ASSERT_TRUE((*exchange)->begin_step(7, {}).ok());
  ASSERT_TRUE((*exchange)->range_ready(0, 60).ok());
  const absl::Status status = (*exchange)->finish(soon());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("step 7"));
}

TEST(AllReduceExchange, CloseEndsAFinishThatWaitsForAPeerAndTheErrorStays) {
  auto group = collective::make_in_process_group(2, Generation{1}, kClock);
  std::vector<float> gradient(4096, 1);
  auto exchange = make_exchange(kAllReduce, spec_of(1024, true), *group[0], gradient, kClock);
  ASSERT_TRUE((*exchange)->begin_step(0, {}).ok());
  ASSERT_TRUE((*exchange)->range_ready(0, 4096).ok());
  std::jthread closer([&] { (*exchange)->close(absl::AbortedError("evicted: worker-1 is gone")); });
  const absl::Status status = (*exchange)->finish(soon());
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("worker-1 is gone"));
  EXPECT_EQ((*exchange)->begin_step(1, {}).code(), absl::StatusCode::kAborted);
}

TEST(MakeExchange, NamesTheFieldThatIsWrong) {
  Recorder recorder;
  std::vector<float> gradient(8);
  const auto message = [&](std::string_view strategy, const v1::ExchangeSpec& spec, std::span<float> g) {
    const auto made = make_exchange(strategy, spec, recorder, g, kClock);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(made.status().message());
  };
  EXPECT_THAT(message("Gossip", spec_of(64, true), gradient), ::testing::HasSubstr("AllReduce"));
  EXPECT_THAT(message(kAllReduce, spec_of(0, true), gradient), ::testing::HasSubstr("bucketBytes"));
  EXPECT_THAT(message(kAllReduce, spec_of(64, true), {}), ::testing::HasSubstr("empty"));
  v1::ExchangeSpec no_timeout = spec_of(64, true);
  no_timeout.set_timeout_ms(0);
  EXPECT_THAT(message(kAllReduce, no_timeout, gradient), ::testing::HasSubstr("timeout"));
}

}  // namespace
}  // namespace paceline::exchange
