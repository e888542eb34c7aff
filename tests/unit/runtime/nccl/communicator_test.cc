// Collectives, buckets and failures; ends and hangs: ends_test.cc; arithmetic: the conformance suite.

#include "runtime/nccl/communicator.h"

#include <atomic>

#include "runtime/collective/arguments.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/nccl/nccl_world.h"

namespace paceline::nccl {
namespace {

using fake_nccl::Phase;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

class CommunicatorTest : public NcclTest {
 protected:
  // One collective of rank r, of each kind, over uneven blocks or even ones.
  absl::Status call(int r, collective::Kind kind, std::size_t count) {
    const cuda::DeviceBuffer data = upload(r, std::vector<float>(count, 1));
    const Deadline deadline = later(clock_);
    switch (kind) {
      case collective::Kind::kAllReduce:
        return rank(r).all_reduce(data.address(), count, DType::kF32, ReduceOp::kSum, deadline);
      case collective::Kind::kReduceScatter:
        return rank(r).reduce_scatter(data.address(), count, DType::kF32, ReduceOp::kSum, deadline);
      case collective::Kind::kAllGather:
        return rank(r).all_gather(data.address(), count, DType::kF32, deadline);
      case collective::Kind::kBroadcast:
        return rank(r).broadcast(data.address(), count, DType::kF32, 0, deadline);
      case collective::Kind::kBarrier:
        return rank(r).barrier(deadline);
    }
    return absl::OkStatus();
  }
};

constexpr ncclResult_t kErrors[] = {ncclUnhandledCudaError, ncclSystemError,  ncclInternalError,
                                    ncclInvalidArgument,    ncclInvalidUsage, ncclRemoteError};

TEST_F(CommunicatorTest, RanksMeetAtAsManyPlacesAsALargeWorldNeeds) {
  limits_.ranks_per_id = 2;
  connect(5);
  EXPECT_EQ(fake_library().counts().ids, 3U);
  for (auto& communicator : ranks_) EXPECT_EQ(communicator->state(), State::kReady);
  run_ranks(5, [&](int r) { EXPECT_TRUE(call(r, collective::Kind::kAllReduce, 7).ok()); });
  EXPECT_EQ(rank(0).counters().operations, 1U);
  EXPECT_EQ(rank(0).counters().bytes_sent, 2 * 4 * 28 / 5U);
}

TEST_F(CommunicatorTest, CollectivesGoBeforeTheKernelsOfTheirGpus) {
  connect(2);
  run_ranks(2, [&](int r) {
    for (const auto kind : {collective::Kind::kAllReduce, collective::Kind::kAllGather})
      EXPECT_TRUE(call(r, kind, 7).ok());
  });
  EXPECT_EQ(fake_library().counts().collectives, 4U);
  EXPECT_EQ(fake_library().counts().first, 4U);
}

TEST_F(CommunicatorTest, AnOlderLibraryHasOnePlace) {
  library_ = binary_path(PACELINE_FAKE_NCCL_SMALL);
  limits_.ranks_per_id = 2;
  // Another library, and other counts: what it does wrong shows in its results.
  connect(3);
  run_ranks(3, [&](int r) {
    const cuda::DeviceBuffer data = upload(r, {1, 2});
    ASSERT_TRUE(rank(r).all_reduce(data.address(), 2, DType::kF32, ReduceOp::kSum, later(clock_)).ok());
    EXPECT_EQ(download(r, data), (std::vector<float>{3, 6}));
  });
}

TEST_F(CommunicatorTest, TwoRanksOnOneGpuAreRefused) {
  gpus_.push_back(std::make_unique<Gpu>(0));
  gpus_.push_back(std::make_unique<Gpu>(0));
  for (const auto& made : create(2, clock_))
    EXPECT_EQ(made.status(), absl::FailedPreconditionError(
                                 "rank 0 and rank 1 have the same GPU, which NCCL does not serve"));
  EXPECT_EQ(fake_library().counts().ids, 0U);
}

TEST_F(CommunicatorTest, BucketsBeginWhenTheirGradientsAreThereAndEndBeforeWhatJoins) {
  constexpr std::size_t kBuckets = 3 * kMostInFlight;
  connect(2);
  run_ranks(2, [&](int r) {
    Gpu& mine = gpu(r);
    ASSERT_TRUE(mine.context->enter().ok());
    const cuda::DeviceBuffer there = must(cuda::DeviceBuffer::create(mine.context, kBuckets * sizeof(float)));
    auto from = must(cuda::PinnedBuffer::create(mine.context, kBuckets * sizeof(float)));
    auto to = must(cuda::PinnedBuffer::create(mine.context, kBuckets * sizeof(float)));
    for (std::size_t i = 0; i < kBuckets; ++i) from.as<float>()[i] = static_cast<float>(i + 1);
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      // Read when the stream comes to it: nobody has waited for this stream yet.
      float* const at = there.as<float>() + i;
      ASSERT_TRUE(mine.stream->to_device(at, from.bytes().subspan(i * sizeof(float), sizeof(float))).ok());
      const auto number =
          rank(r).enqueue_all_reduce(at, 1, DType::kF32, ReduceOp::kSum, *mine.stream, later(clock_));
      ASSERT_TRUE(number.ok()) << number.status();
      EXPECT_EQ(*number, i + 1);
      last = *number;
    }
    ASSERT_TRUE(rank(r).join(*mine.stream, later(clock_)).ok());
    ASSERT_TRUE(mine.stream->to_host(to.bytes(), there.address()).ok());
    ASSERT_TRUE(mine.stream->finish(clock_, later(clock_)).ok());
    for (std::size_t i = 0; i < kBuckets; ++i) ASSERT_EQ(to.as<float>()[i], 2 * static_cast<float>(i + 1));
    EXPECT_TRUE(rank(r).wait(last, later(clock_)).ok());
    EXPECT_EQ(rank(r).counters().operations, kBuckets);
  });
  EXPECT_EQ(fake_library().counts().collectives, 2 * kBuckets);
}

TEST_F(CommunicatorTest, NothingWasEnqueuedNothingIsJoined) {
  connect(1);
  ASSERT_TRUE(gpu(0).context->enter().ok());
  EXPECT_TRUE(rank(0).join(*gpu(0).stream, later(clock_)).ok());
  EXPECT_TRUE(rank(0).barrier(later(clock_)).ok());
  EXPECT_EQ(fake_library().counts().collectives, 0U);
}

TEST_F(CommunicatorTest, AWrongCallEndsIt) {
  connect(1);
  EXPECT_TRUE(
      absl::IsInvalidArgument(rank(0).all_reduce(nullptr, 3, DType::kF32, ReduceOp::kSum, later(clock_))));
  EXPECT_TRUE(absl::IsInvalidArgument(rank(0).barrier(later(clock_))));
  until([&] { return rank(0).state() == State::kGone; });
  EXPECT_EQ(fake_library().counts().aborts, 1U);
}

TEST_F(CommunicatorTest, EveryErrorOfEveryCallThatOpens) {
  for (const std::string name : {"ncclGetUniqueId", "ncclCommInitRankScalable", "ncclCommGetAsyncError"}) {
    for (const ncclResult_t error : kErrors) {
      SCOPED_TRACE(name + " " + std::to_string(error));
      fake_library().reset();
      fake_library().control().fail = [&](const std::string& call) {
        return call == name ? error : ncclSuccess;
      };
      const absl::Status status = create(1, clock_)[0].status();
      EXPECT_EQ(status.code(), must(Library::open(library_))->check(error, "").code());
      EXPECT_THAT(std::string(status.message()), HasSubstr("the last words"));
      EXPECT_EQ(fake_library().counts().communicators, 0U);
    }
  }
}

TEST_F(CommunicatorTest, EveryErrorOfEveryCollective) {
  using collective::Kind;
  const struct {
    const char* name;
    Kind kind;
    std::size_t count;
  } cases[] = {{"ncclAllReduce", Kind::kAllReduce, 4},      {"ncclReduceScatter", Kind::kReduceScatter, 4},
               {"ncclAllGather", Kind::kAllGather, 4},      {"ncclBroadcast", Kind::kBroadcast, 4},
               {"ncclReduce", Kind::kReduceScatter, 5},     {"ncclBroadcast", Kind::kAllGather, 5},
               {"ncclGroupStart", Kind::kReduceScatter, 5}, {"ncclGroupEnd", Kind::kAllGather, 5}};
  for (const auto& c : cases) {
    for (const ncclResult_t error : kErrors) {
      SCOPED_TRACE(std::string(c.name) + " " + std::to_string(error));
      ranks_.clear();
      fake_library().reset();
      connect(2);
      fake_library().control().fail = [&](const std::string& call) {
        return call == c.name ? error : ncclSuccess;
      };
      const absl::StatusCode expected = must(Library::open(library_))->check(error, "").code();
      run_ranks(2, [&](int r) {
        const absl::Status status = call(r, c.kind, c.count);
        // Or the other rank's end, where that came first.
        EXPECT_TRUE(status.code() == expected || absl::IsUnavailable(status)) << status;
        EXPECT_EQ(rank(r).closed(), status);
        EXPECT_EQ(rank(r).barrier(later(clock_)), status);
        until([&] { return rank(r).state() == State::kGone; });
      });
      EXPECT_EQ(fake_library().counts().aborts, 2U);
      fake_library().control().fail = nullptr;
    }
  }
}

// NCCL tells of most failures long after the call that began what failed.
TEST_F(CommunicatorTest, EveryLateErrorInEveryPhase) {
  for (const Phase phase : {Phase::kInit, Phase::kCollective, Phase::kIdle, Phase::kFinalizing}) {
    for (const ncclResult_t error : kErrors) {
      SCOPED_TRACE(std::to_string(static_cast<int>(phase)) + " " + std::to_string(error));
      ranks_.clear();
      fake_library().reset();
      std::atomic<int> asked{0};
      std::atomic<bool> armed{phase == Phase::kInit};
      fake_library().control().late = [&](Phase now, int) {
        return armed && now == phase && ++asked > 3 ? error : ncclNumResults;
      };
      // More questions than that, and a collective that does not end by itself.
      fake_library().control().questions = 10;
      fake_library().control().gpus_move = phase != Phase::kIdle;
      const absl::StatusCode expected = must(Library::open(library_))->check(error, "").code();
      if (phase == Phase::kInit) {
        EXPECT_EQ(create(1, clock_)[0].status().code(), expected);
      } else {
        connect(1);
        armed = true;
        if (phase == Phase::kFinalizing) {
          EXPECT_TRUE(rank(0).end());
        } else {
          const absl::Status status = call(0, collective::Kind::kAllReduce, 4);
          EXPECT_EQ(status.code(), expected) << status;
          EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("rank 0"), HasSubstr("the last words")));
          until([&] { return rank(0).state() == State::kGone; });
        }
      }
      EXPECT_EQ(fake_library().counts().aborts, 1U);
      EXPECT_EQ(fake_library().counts().communicators, 0U);
      ranks_.clear();
      fake_library().control().late = nullptr;
    }
  }
}

// Also of one that nobody uses.
TEST_F(CommunicatorTest, ALateErrorOfAnIdleOneIsNoticed) {
  std::atomic<bool> armed{false};
  fake_library().control().late = [&](Phase, int) { return armed ? ncclRemoteError : ncclNumResults; };
  connect(1);
  armed = true;
  until([&] { return rank(0).state() == State::kGone; });
  EXPECT_TRUE(absl::IsUnavailable(rank(0).closed()));
}

// A GPU's own failure comes from its events.
TEST_F(CommunicatorTest, AFailedGpuIsTold) {
  connect(1);
  const cuda::DeviceBuffer data = upload(0, {1});
  cuda::fake().control().fail = [](const std::string& call) {
    return call == "cuEventQuery" ? CUDA_ERROR_ECC_UNCORRECTABLE : CUDA_SUCCESS;
  };
  const absl::Status status =
      rank(0).all_reduce(data.address(), 1, DType::kF32, ReduceOp::kSum, later(clock_));
  until([&] { return rank(0).state() == State::kGone; });
  cuda::fake().control().fail = nullptr;
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ECC"));
}

}  // namespace
}  // namespace paceline::nccl
