// How communicators end: deadlines, close(), peers that go, calls that never return, in every state.

#include <atomic>

#include "runtime/collective/fault.h"
#include "runtime/nccl/communicator.h"
#include "tests/unit/runtime/nccl/nccl_world.h"

namespace paceline::nccl {
namespace {

using fake_nccl::Phase;
using ::testing::HasSubstr;

class EndsTest : public NcclTest {
 protected:
  absl::Status all_reduce(int r, const cuda::DeviceBuffer& data, const Clock& clock) {
    return rank(r).all_reduce(data.address(), 1, DType::kF32, ReduceOp::kSum, later(clock));
  }
  void hang_in(const std::string& name) {
    fake_library().control().hang = [name](const std::string& call) { return call == name; };
  }
  void until_gone(int r) {
    until([&] { return rank(r).state() == State::kGone; });
  }
};

TEST_F(EndsTest, OneThatNobodyNeedsIsLeft) {
  connect(2);
  for (auto& communicator : ranks_) {
    EXPECT_TRUE(communicator->end());
    EXPECT_TRUE(communicator->end());
    EXPECT_EQ(communicator->state(), State::kGone);
    EXPECT_TRUE(absl::IsAborted(communicator->barrier(later(clock_))));
  }
  EXPECT_EQ(fake_library().counts().destroys, 2U);
  EXPECT_EQ(fake_library().counts().aborts, 0U);
}

// ---- deadlines

TEST_F(EndsTest, AWorldThatIsNeverThereIsNotWaitedForLongerThanAllowed) {
  fake_library().control().late = [&](Phase phase, int) {
    if (phase == Phase::kInit) still_.advance(std::chrono::seconds(1));
    return phase == Phase::kInit ? ncclInProgress : ncclNumResults;
  };
  const absl::Status status = create(1, still_)[0].status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 0: ncclCommInitRankScalable was still in progress"));
  EXPECT_EQ(fake_library().counts().aborts, 1U);
}

TEST_F(EndsTest, ACollectiveThatDoesNotEndIsAborted) {
  for (const Phase stays : {Phase::kCollective, Phase::kIdle}) {  // not enqueued; on the GPU
    SCOPED_TRACE(static_cast<int>(stays));
    ranks_.clear();
    fake_library().reset();
    std::atomic<bool> armed{false};
    fake_library().control().gpus_move = stays != Phase::kIdle;
    fake_library().control().late = [&](Phase phase, int) {
      if (!armed || phase != stays) return ncclNumResults;
      still_.advance(std::chrono::seconds(1));
      return phase == Phase::kCollective ? ncclInProgress : ncclNumResults;
    };
    connect(1, still_);
    const cuda::DeviceBuffer data = upload(0, {1});
    armed = true;
    const absl::Status status = all_reduce(0, data, still_);
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("NCCL does not tell for whom it waits"));
    until_gone(0);
    armed = false;
    EXPECT_EQ(fake_library().counts().aborts, 1U);
    ranks_.clear();
    fake_library().control().late = nullptr;
  }
}

TEST_F(EndsTest, OneThatCannotBeLeftIsAborted) {
  fake_library().control().finalize_waits = true;
  fake_library().control().late = [&](Phase phase, int) {
    if (phase == Phase::kFinalizing) still_.advance(std::chrono::seconds(1));
    return ncclNumResults;
  };
  connect(2, still_);
  EXPECT_TRUE(rank(0).end());
  EXPECT_EQ(fake_library().counts().aborts, 1U);
  // The other is the last.
  EXPECT_TRUE(rank(1).end());
  EXPECT_EQ(fake_library().counts().destroys, 1U);
}

// ---- closed by others

// As a peer's end does, by the host's communicator: nobody else has this one yet.
TEST_F(EndsTest, ClosedWhileItOpens) {
  fake_library().control().late = [&](Phase phase, int) {
    if (phase == Phase::kInit) hosts_[0]->close(absl::UnavailableError("a peer is gone"));
    return phase == Phase::kInit ? ncclInProgress : ncclNumResults;
  };
  EXPECT_EQ(create(1, clock_)[0].status(), absl::UnavailableError("a peer is gone"));
  EXPECT_EQ(fake_library().counts().aborts, 1U);
}

// One that was there for a moment, and did not find the others.
TEST_F(EndsTest, OneRankFailsToOpen) {
  std::atomic<int> calls{0};
  fake_library().control().fail = [&](const std::string& call) {
    return call == "ncclCommInitRankScalable" && calls++ == 1 ? ncclSystemError : ncclSuccess;
  };
  for (const auto& made : create(3, clock_)) EXPECT_TRUE(absl::IsUnavailable(made.status())) << made.status();
  EXPECT_GE(fake_library().counts().aborts, 1U);
  EXPECT_EQ(fake_library().counts().communicators, 0U);
}

TEST_F(EndsTest, ClosedWhileNobodyUsesIt) {
  connect(2);
  rank(0).close(absl::AbortedError("first"));
  rank(0).close(absl::AbortedError("second"));
  EXPECT_EQ(rank(0).closed(), absl::AbortedError("first"));
  until_gone(0);
  until_gone(1);
  EXPECT_TRUE(absl::IsUnavailable(rank(1).closed())) << rank(1).closed();
  EXPECT_EQ(collective::faulty_rank(rank(1).closed()), 0);
  EXPECT_EQ(fake_library().counts().aborts, 2U);
  EXPECT_TRUE(rank(0).end());
}

TEST_F(EndsTest, ClosedWithoutAReason) {
  connect(1);
  rank(0).close(absl::OkStatus());
  EXPECT_TRUE(absl::IsAborted(rank(0).closed()));
  EXPECT_TRUE(absl::IsAborted(rank(0).barrier(later(clock_))));
}

// Both ranks' kernels spin; one member closes, or is lost: both are aborted.
TEST_F(EndsTest, ClosedWhileACollectiveIsUnderWay) {
  for (const Phase stays : {Phase::kCollective, Phase::kIdle}) {
    SCOPED_TRACE(static_cast<int>(stays));
    ranks_.clear();
    fake_library().reset();
    std::atomic<bool> armed{false};
    fake_library().control().gpus_move = stays != Phase::kIdle;
    fake_library().control().late = [&](Phase phase, int) {
      return armed && phase == stays && stays == Phase::kCollective ? ncclInProgress : ncclNumResults;
    };
    connect(2);
    armed = true;
    std::vector<cuda::DeviceBuffer> data;
    for (int r = 0; r < 2; ++r) data.push_back(upload(r, {1}));
    {
      std::jthread closer([&] {
        until([] { return fake_library().counts().collectives == 2; });
        rank(1).close(absl::AbortedError("the view is over"));
      });
      run_ranks(2, [&](int r) {
        const absl::Status status = all_reduce(r, data[static_cast<std::size_t>(r)], clock_);
        if (r == 1) {
          EXPECT_EQ(status, absl::AbortedError("the view is over"));
        } else {
          EXPECT_TRUE(absl::IsUnavailable(status)) << status;
          EXPECT_EQ(collective::faulty_rank(status), 1);
        }
      });
    }
    for (int r = 0; r < 2; ++r) until_gone(r);
    EXPECT_EQ(fake_library().counts().aborts, 2U);
    ranks_.clear();
  }
}

TEST_F(EndsTest, ClosedByAPeerWhileItLeaves) {
  fake_library().control().late = [](Phase phase, int) {
    return phase == Phase::kFinalizing ? ncclInProgress : ncclNumResults;
  };
  limits_.leaving = std::chrono::seconds(3600);
  connect(2);
  std::jthread peer([&] {
    until([&] { return rank(0).state() == State::kLeaving; });
    rank(1).close(absl::AbortedError("the view is over"));
  });
  EXPECT_TRUE(rank(0).end());
  peer.join();
  EXPECT_TRUE(rank(1).end());
  EXPECT_EQ(fake_library().counts().aborts, 2U);
}

TEST_F(EndsTest, DestroyedWithBucketsUnderWay) {
  fake_library().control().gpus_move = false;
  connect(1);
  const cuda::DeviceBuffer data = upload(0, {1});
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(
        rank(0)
            .enqueue_all_reduce(data.address(), 1, DType::kF32, ReduceOp::kSum, *gpu(0).stream, later(clock_))
            .ok());
  EXPECT_TRUE(rank(0).end());
  EXPECT_TRUE(absl::IsAborted(rank(0).closed()));
  EXPECT_EQ(fake_library().counts().aborts, 1U);
}

// ---- calls that never return

TEST_F(EndsTest, HangsWhileItOpens) {
  for (const char* name : {"ncclGetUniqueId", "ncclCommInitRankScalable", "ncclCommGetAsyncError"}) {
    SCOPED_TRACE(name);
    fake_library().reset();
    hang_in(name);
    absl::Status status;
    {
      const Ticker ticker(still_, 1);
      status = create(1, still_)[0].status();
    }
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(name) + " of NCCL has not returned"));
    EXPECT_EQ(fake_library().counts().hanging, 1U);
    EXPECT_EQ(fake_library().counts().aborts, 0U) << "another thread is in the communicator";
    fake_library().release();
    until([&] { return gpu(0).context.use_count() == 2; });  // and its stream
  }
}

TEST_F(EndsTest, HangsInACollective) {
  for (const std::string name : {"ncclAllReduce", "ncclCommGetAsyncError"}) {
    for (const bool closed : {false, true}) {
      SCOPED_TRACE(name + (closed ? ", closed" : ""));
      ranks_.clear();
      fake_library().reset();
      std::atomic<bool> armed{false};
      fake_library().control().hang = [&](const std::string& call) { return armed && call == name; };
      connect(1, still_);
      const cuda::DeviceBuffer data = upload(0, {1});
      armed = true;
      absl::Status status;
      if (closed) {
        std::jthread closer([&] {
          fake_library().wait_for_hanging(1);
          rank(0).close(absl::AbortedError("the view is over"));
        });
        status = all_reduce(0, data, still_);
        EXPECT_EQ(status, absl::AbortedError("the view is over"));
      } else {
        const Ticker ticker(still_, 1);
        status = all_reduce(0, data, still_);
        EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr(name + " of NCCL has not returned"));
      }
      EXPECT_EQ(rank(0).closed(), status);
      {
        const Ticker ticker(still_, 1);
        EXPECT_FALSE(rank(0).end());
        EXPECT_FALSE(rank(0).end());
      }
      EXPECT_EQ(rank(0).state(), State::kGone);
      EXPECT_EQ(rank(0).closed(), status);
      EXPECT_EQ(fake_library().counts().aborts, 0U) << "another thread is in the communicator";
      armed = false;
      ranks_.clear();
      fake_library().release();
      until([&] { return gpu(0).context.use_count() == 3; });  // its stream, the data
    }
  }
}

TEST_F(EndsTest, HangsWhileItEnds) {
  for (const std::string name : {"ncclCommFinalize", "ncclCommDestroy", "ncclCommAbort"}) {
    SCOPED_TRACE(name);
    ranks_.clear();
    fake_library().reset();
    hang_in(name);
    connect(1, still_);
    if (name == "ncclCommAbort") {
      rank(0).close(absl::AbortedError("first"));
      fake_library().wait_for_hanging(1);
      EXPECT_EQ(rank(0).state(), State::kAborting);
      rank(0).close(absl::AbortedError("second"));
      EXPECT_EQ(rank(0).barrier(later(still_)), absl::AbortedError("first"));
    }
    {
      const Ticker ticker(still_, 1);
      EXPECT_FALSE(rank(0).end());
    }
    EXPECT_EQ(rank(0).state(), State::kGone);
    EXPECT_TRUE(absl::IsAborted(rank(0).closed()));
    EXPECT_EQ(fake_library().counts().communicators, 1U) << "left behind";
    ranks_.clear();
    fake_library().release();
    until([&] { return gpu(0).context.use_count() == 2; });
  }
}

// What is left behind does not hold the host's communicator: peers see that it went.
TEST_F(EndsTest, PeersOfOneThatIsStuckAreTold) {
  std::atomic<bool> hung{false};
  fake_library().control().hang = [&](const std::string& call) {
    return call == "ncclCommFinalize" && !hung.exchange(true);
  };
  connect(2, still_);
  {
    const Ticker ticker(still_, 1);
    EXPECT_FALSE(rank(0).end());
  }
  const absl::Status status = rank(1).barrier(later(still_));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

// A new view begins where the last one is stuck.
TEST_F(EndsTest, TheNextCommunicatorDoesNotWaitForOneThatIsStuck) {
  std::atomic<int> aborts{0};
  fake_library().control().hang = [&](const std::string& call) {
    return call == "ncclCommAbort" && aborts++ == 0;
  };
  connect(1, still_);
  rank(0).close(absl::AbortedError("the view is over"));
  {
    const Ticker ticker(still_, 1);
    EXPECT_FALSE(rank(0).end());
  }
  ranks_.clear();
  connect(1, still_);
  const cuda::DeviceBuffer data = upload(0, {1});
  EXPECT_TRUE(all_reduce(0, data, still_).ok());
  ranks_.clear();
  EXPECT_EQ(fake_library().counts().communicators, 1U);
}

}  // namespace
}  // namespace paceline::nccl
