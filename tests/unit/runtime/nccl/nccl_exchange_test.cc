// Gradients by NCCL, a step at a time, on the libraries of the tests.

#include "runtime/nccl/nccl_exchange.h"

#include <atomic>
#include <numeric>

#include "runtime/collective/fabric.h"
#include "runtime/collective/fault.h"
#include "tests/unit/runtime/nccl/nccl_world.h"
#include "tests/unit/runtime/nccl/no_queue.h"

namespace paceline::nccl {
namespace {

using fake_nccl::Phase;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t kElements = 1000, kBehind = 3;

class NcclExchangeTest : public NcclTest {
 protected:
  struct Member {
    std::unique_ptr<collective::Communicator> links;
    std::optional<cuda::DeviceBuffer> gradient;
    std::vector<float> behind = std::vector<float>(kBehind);
    NoQueue queue;
    std::unique_ptr<exchange::GradientExchange> exchange;
  };

  NcclExchangeTest() {
    spec_.set_bucket_bytes(64 * sizeof(float));
    spec_.set_timeout_ms(60'000);
    spec_.set_overlap(true);
  }
  void TearDown() override {
    members_.clear();
    NcclTest::TearDown();
  }

  // Gradients of `elements` on each GPU.
  void open(int world, const Clock& clock, std::size_t elements = kElements) {
    connect(world, clock);
    auto links = collective::make_in_process_group(world, Generation{1}, clock);
    for (int r = 0; r < world; ++r) {
      auto member = std::make_unique<Member>();
      member->links = std::move(links[static_cast<std::size_t>(r)]);
      ASSERT_TRUE(gpu(r).context->enter().ok());
      member->gradient.emplace(must(cuda::DeviceBuffer::create(gpu(r).context, elements * sizeof(float))));
      member->exchange = must(make_nccl_exchange(
          {.spec = spec_,
           .clock = clock,
           .links = *member->links,
           .own = nullptr,
           .queue = member->queue,
           .gradient = member->gradient->as<float>(),
           .elements = elements,
           .behind = member->behind},
          *gpu(r).stream, std::move(ranks_[static_cast<std::size_t>(r)]),
          [](auto communicator) { communicator->end(); }, least_));
      members_.push_back(std::move(member));
    }
    ranks_.clear();
  }
  void open(int world) { open(world, clock_); }
  Member& member(int r) { return *members_[static_cast<std::size_t>(r)]; }

  // Rank r's part of a step, to before its finish(): element i is (r + 1) * (step + i).
  absl::Status declare(int r, Step step) {
    Member& m = member(r);
    PL_RETURN_IF_ERROR(gpu(r).context->enter());
    PL_RETURN_IF_ERROR(m.exchange->begin_step(step, {}));
    std::vector<float> values(kElements);
    for (std::size_t i = 0; i < kElements; ++i)
      values[i] = static_cast<float>((r + 1) * (step + static_cast<Step>(i)));
    PL_RETURN_IF_ERROR(gpu(r).stream->to_device(m.gradient->address(), std::as_bytes(std::span(values))));
    m.behind.assign(kBehind, static_cast<float>(r + 1));
    PL_RETURN_IF_ERROR(m.exchange->range_ready(700, kElements));
    PL_RETURN_IF_ERROR(m.exchange->range_ready(kElements, kElements + kBehind));
    PL_RETURN_IF_ERROR(m.exchange->range_ready(33, 700));
    return m.exchange->range_ready(0, 33);
  }
  absl::Status take_step(int r, Step step, const Clock& clock) {
    PL_RETURN_IF_ERROR(declare(r, step));
    PL_RETURN_IF_ERROR(member(r).exchange->wait_for_device());
    return member(r).exchange->finish(later(clock));
  }

  v1::ExchangeSpec spec_;
  std::size_t least_ = 1;  // bytes of a bucket
  std::vector<std::unique_ptr<Member>> members_;
};

TEST_F(NcclExchangeTest, TheSumOfAllIsOnEveryGpu) {
  for (const int world : {1, 2, 4}) {
    gpus_.clear();
    members_.clear();
    open(world);
    run_ranks(world, [&](int r) {
      for (Step step = 0; step < 4; ++step) {
        const absl::Status taken = take_step(r, step, clock_);
        ASSERT_TRUE(taken.ok()) << taken;
        const float sum = static_cast<float>(world * (world + 1) / 2);
        EXPECT_THAT(member(r).behind, Each(sum));
        const auto values = download(r, *member(r).gradient);
        for (std::size_t i = 0; i < kElements; ++i)
          ASSERT_EQ(values[i], sum * static_cast<float>(step + static_cast<Step>(i)));
      }
      EXPECT_GT(member(r).exchange->last_times().bytes_sent + (world == 1 ? 1 : 0), 0U);
    });
    members_.clear();
    EXPECT_EQ(stuck_, 0);
  }
}

// 1000 floats in buckets of 64: what is complete is under way before all is declared.
TEST_F(NcclExchangeTest, BucketsBeginWhileTheGradientIsComputed) {
  open(2);
  std::atomic<int> done{0};
  run_ranks(2, [&](int r) {
    Member& m = member(r);
    ASSERT_TRUE(gpu(r).context->enter().ok());
    ASSERT_TRUE(m.exchange->begin_step(0, {}).ok());
    ASSERT_TRUE(gpu(r).stream->clear(m.gradient->address(), kElements * sizeof(float)).ok());
    ASSERT_TRUE(m.exchange->range_ready(500, kElements).ok());
    ASSERT_TRUE(m.exchange->wait_for_device().ok());
    until([&] { return fake_library().counts().collectives >= 2 * 7; });  // 500 / 64, of both
    ++done;
    until([&] { return done == 2; });
    EXPECT_EQ(fake_library().counts().collectives, 2U * 7);
    ASSERT_TRUE(m.exchange->range_ready(kElements, kElements + kBehind).ok());
    ASSERT_TRUE(m.exchange->range_ready(0, 500).ok());
    ASSERT_TRUE(m.exchange->finish(later(clock_)).ok());
  });
  EXPECT_EQ(fake_library().counts().collectives, 2U * 16);  // what is left over is of the last one
}

TEST_F(NcclExchangeTest, BucketsAreAsLargeAsPaysAtLeast) {
  constexpr std::size_t kMany = 3 * kLeastBucketBytes / sizeof(float);
  least_ = kLeastBucketBytes;
  for (const auto& [bucket_bytes, buckets] :
       {std::pair<std::size_t, std::size_t>{1 << 20, 3}, {kMany * sizeof(float), 1}}) {
    members_.clear();
    fake_library().reset();
    spec_.set_bucket_bytes(static_cast<std::int64_t>(bucket_bytes));
    open(1, clock_, kMany);
    exchange::GradientExchange& exchange = *member(0).exchange;
    ASSERT_TRUE(exchange.begin_step(0, {}).ok());
    ASSERT_TRUE(exchange.range_ready(0, kMany).ok());
    ASSERT_TRUE(exchange.range_ready(kMany, kMany + kBehind).ok());
    ASSERT_TRUE(exchange.finish(later(clock_)).ok());
    EXPECT_EQ(fake_library().counts().collectives, buckets) << bucket_bytes;
  }
}

TEST_F(NcclExchangeTest, NothingIsMadeAfterTheFirstStep) {
  open(1);
  const auto steps = [&](Step from, Step to) {
    for (Step step = from; step < to; ++step) {
      ASSERT_TRUE(member(0).exchange->begin_step(step, {}).ok());
      member(0).behind.assign(kBehind, 1);
      ASSERT_TRUE(member(0).exchange->range_ready(400, kElements).ok());
      ASSERT_TRUE(member(0).exchange->range_ready(kElements, kElements + kBehind).ok());
      ASSERT_TRUE(member(0).exchange->range_ready(0, 400).ok());
    }
  };
  ASSERT_TRUE(gpu(0).context->enter().ok());
  const auto made = [] { return cuda::fake().counts().events; };
  const std::size_t at_first = made();
  steps(0, 1);
  const std::size_t after = made();
  EXPECT_EQ(after, at_first + 2);  // one for each range
  steps(1, 100);
  EXPECT_EQ(made(), after);
}

TEST_F(NcclExchangeTest, InvalidRangeIsRefused) {
  open(1);
  ASSERT_TRUE(gpu(0).context->enter().ok());
  exchange::GradientExchange& exchange = *member(0).exchange;
  ASSERT_TRUE(exchange.begin_step(5, {}).ok());
  for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{990, 1001}, {1000, 1004}, {20, 10}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(exchange.range_ready(begin, end))) << begin << " " << end;
  }
  const absl::Status early = exchange.finish(later(clock_));
  EXPECT_TRUE(absl::IsFailedPrecondition(early));
  EXPECT_THAT(std::string(early.message()), HasSubstr("step 5"));
  EXPECT_TRUE(absl::IsAborted(exchange.begin_step(6, {})));
  // Twice the same is told when the device has come to it.
  members_.clear();
  open(1);
  ASSERT_TRUE(gpu(0).context->enter().ok());
  exchange::GradientExchange& again = *member(0).exchange;
  ASSERT_TRUE(again.begin_step(6, {}).ok());
  ASSERT_TRUE(again.range_ready(0, 600).ok());
  ASSERT_TRUE(again.range_ready(0, 600).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(again.wait_for_device()));

  spec_.set_bucket_bytes(0);
  Member& m = member(0);
  EXPECT_TRUE(absl::IsInvalidArgument(
      make_nccl_exchange({spec_, clock_, *m.links, nullptr, m.queue, m.gradient->as<float>(), kElements, {}},
                         *gpu(0).stream, nullptr, nullptr)
          .status()));
}

// What NCCL says while a bucket is reduced names the step, and who it was.
TEST_F(NcclExchangeTest, AnErrorOfABucketEndsTheStepAndIsToldAgain) {
  open(2);
  fake_library().control().late = [](Phase phase, int) {
    return phase == Phase::kCollective ? ncclRemoteError : ncclNumResults;
  };
  run_ranks(2, [&](int r) {
    const absl::Status ended = take_step(r, 7, clock_);
    ASSERT_FALSE(ended.ok());
    EXPECT_TRUE(absl::IsUnavailable(ended) || absl::IsAborted(ended)) << ended;
    EXPECT_FALSE(member(r).exchange->begin_step(8, {}).ok());
  });
}

// A rank that has gone: the other learns it from its links, aborts, and is not stuck.
TEST_F(NcclExchangeTest, APeersEndEndsTheStep) {
  open(2);
  run_ranks(2, [&](int r) {
    if (r == 1) {
      EXPECT_TRUE(take_step(1, 0, clock_).ok());
      member(1).links->close(absl::UnavailableError("it is gone"));
      member(1).exchange.reset();
      return;
    }
    EXPECT_TRUE(take_step(0, 0, clock_).ok());
    const absl::Status ended = take_step(0, 1, clock_);
    EXPECT_FALSE(ended.ok());
    member(0).exchange.reset();
    EXPECT_EQ(stuck_, 0);
  });
}

TEST_F(NcclExchangeTest, CloseWakesWhoWaits) {
  open(2);
  run_ranks(2, [&](int r) {
    if (r == 1) {
      ASSERT_TRUE(declare(1, 0).ok());
      member(1).exchange->close(absl::AbortedError("the test ends it"));
      member(1).links->close(absl::AbortedError("the test ends it"));
      EXPECT_FALSE(member(1).exchange->wait_for_device().ok());
      return;
    }
    EXPECT_FALSE(take_step(0, 0, clock_).ok());
  });
}

// Neither peers nor its own buckets, which wait for them, wait for what will not come.
TEST_F(NcclExchangeTest, ADevicesFailureEndsTheExchange) {
  open(2);
  Member& m = member(0);
  std::atomic<bool> fails{false};
  cuda::fake().control().fail = [&](const std::string& call) {
    return fails && call == "cuEventQuery" ? CUDA_ERROR_ECC_UNCORRECTABLE : CUDA_SUCCESS;
  };
  ASSERT_TRUE(gpu(0).context->enter().ok());
  ASSERT_TRUE(m.exchange->begin_step(0, {}).ok());
  ASSERT_TRUE(m.exchange->range_ready(500, kElements).ok());
  ASSERT_TRUE(m.exchange->wait_for_device().ok());
  fails = true;
  ASSERT_TRUE(m.exchange->range_ready(0, 500).ok());
  const absl::Status failed = m.exchange->wait_for_device();
  EXPECT_TRUE(absl::IsInternal(failed)) << failed;
  EXPECT_FALSE(m.exchange->begin_step(1, {}).ok());
  EXPECT_EQ(collective::faulty_rank(member(1).links->closed()), 0);
  EXPECT_FALSE(member(1).exchange->begin_step(0, {}).ok());
  m.exchange.reset();
  fails = false;
  cuda::fake().control().fail = nullptr;
  EXPECT_EQ(stuck_, 0);
}

// A call of NCCL that does not return: DEADLINE_EXCEEDED, and when the exchange goes, the process is told.
TEST_F(NcclExchangeTest, AHangEndsAtItsDeadlineAndIsTold) {
  open(1, still_);
  fake_library().control().hang = [](const std::string& call) { return call == "ncclAllReduce"; };
  {
    const Ticker ticker(still_, 1);
    ASSERT_TRUE(declare(0, 0).ok());
    absl::Status ended = member(0).exchange->wait_for_device();
    if (ended.ok()) ended = member(0).exchange->finish(later(still_));
    EXPECT_TRUE(absl::IsDeadlineExceeded(ended)) << ended;
    EXPECT_THAT(std::string(ended.message()), HasSubstr("step 0"));
    EXPECT_EQ(stuck_, 0);
    member(0).exchange.reset();
  }
  EXPECT_EQ(stuck_, 1);
  fake_library().control().hang = nullptr;
  fake_library().release();
  until([&] { return gpu(0).context.use_count() == 3; });  // its stream, the gradient
}

}  // namespace
}  // namespace paceline::nccl
