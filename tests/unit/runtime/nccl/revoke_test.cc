// What is at work when its use ends: it is revoked, or aborted where it can not be.

#include <atomic>

#include "tests/unit/runtime/nccl/shrink_world.h"

namespace paceline::nccl {
namespace {

using fake_nccl::Phase;

// A revoke that fails, early or late, or takes too long: it is aborted.
TEST_F(ShrinkTest, FailedRevokeIsAborted) {
  enum How { kAtOnce, kLate, kNever };
  for (const How how : {kAtOnce, kLate, kNever}) {
    for (const ncclResult_t error : kErrors) {
      SCOPED_TRACE(std::to_string(how) + " " + std::to_string(error));
      begin_again();
      if (how == kAtOnce) fail_in("ncclCommRevoke", error);
      fake_library().control().gpus_move = false;
      fake_library().control().late = [&](Phase phase, int) {
        if (phase != Phase::kRevoking || how == kAtOnce) return ncclNumResults;
        still_.advance(std::chrono::seconds(1));
        return how == kLate ? error : ncclInProgress;
      };
      connect(1, still_);
      std::jthread closer([&] {
        until([&] { return counts().enqueued == 1; });
        rank(0).close(absl::AbortedError("the view is over"));
      });
      EXPECT_EQ(all_reduce(0, still_), absl::AbortedError("the view is over"));
      closer.join();
      EXPECT_TRUE(rank(0).keep());
      EXPECT_EQ(rank(0).state(), State::kGone);
      EXPECT_EQ(counts().aborts, 1U);
      fake_library().control().late = nullptr;
      fake_library().control().fail = nullptr;
    }
  }
}

// While a call is in progress NCCL is not to be asked for anything but an abort; nor is what failed kept.
TEST_F(ShrinkTest, CollectiveInProgressOrFailedIsAborted) {
  for (const bool failed : {false, true}) {
    SCOPED_TRACE(failed);
    begin_again();
    std::atomic<bool> armed{false};
    fake_library().control().late = [&](Phase phase, int) {
      if (!armed || phase != Phase::kCollective) return ncclNumResults;
      if (!failed) rank(0).close(absl::AbortedError("the view is over"));
      return failed ? ncclRemoteError : ncclInProgress;
    };
    connect(1);
    armed = true;
    EXPECT_FALSE(all_reduce(0, clock_).ok());
    EXPECT_TRUE(rank(0).keep());
    EXPECT_EQ(rank(0).state(), State::kGone);
    EXPECT_EQ(counts().revokes, 0U);
    EXPECT_EQ(counts().aborts, 1U);
    fake_library().control().late = nullptr;
  }
}

// It goes on to its end.
TEST_F(ShrinkTest, ClosedAgainWhileItIsRevoked) {
  fake_library().control().gpus_move = false;
  std::atomic<bool> closed{false};
  fake_library().control().late = [&](Phase phase, int) {
    if (phase == Phase::kRevoking && !closed.exchange(true)) {
      rank(0).close(absl::AbortedError("again"));
      hosts_[0]->close(absl::UnavailableError("a peer is gone"));
    }
    return ncclNumResults;
  };
  connect(1);
  std::jthread closer([&] {
    until([&] { return counts().enqueued == 1; });
    rank(0).close(absl::AbortedError("the view is over"));
  });
  EXPECT_EQ(all_reduce(0, clock_), absl::AbortedError("the view is over"));
  EXPECT_TRUE(rank(0).keep());
  EXPECT_TRUE(closed);
  EXPECT_EQ(rank(0).state(), State::kKept);
  EXPECT_EQ(rank(0).closed(), absl::AbortedError("the view is over"));
  EXPECT_EQ(counts().revokes, 1U);
  EXPECT_EQ(counts().aborts, 0U);
}

TEST_F(ShrinkTest, ClosedWhileItIsKept) {
  connect(3);
  keep_all();
  const absl::Status before = rank(0).closed();
  EXPECT_TRUE(absl::IsAborted(before)) << before;
  rank(0).close(absl::UnavailableError("a peer is gone"));
  EXPECT_EQ(rank(0).closed(), before);
  EXPECT_EQ(rank(0).state(), State::kKept);
  connect_from({0, 2});
  expect_origins("shrunk from view 1");
  expect_sums();
}

// It is not asked before it is shrunk.
TEST_F(ShrinkTest, ALateErrorWhileItIsKept) {
  connect(3);
  keep_all();
  std::atomic<bool> shrinks{false}, early{false}, anew{false};
  fake_library().control().fail = [&](const std::string& call) {
    if (call == "ncclCommShrink") shrinks = true;
    if (call == "ncclCommGetAsyncError" && !shrinks) early = true;
    if (call == "ncclCommInitRankScalable") anew = true;
    return ncclSuccess;
  };
  fake_library().control().late = [&](Phase, int) { return anew ? ncclNumResults : ncclRemoteError; };
  connect_from({0, 2});
  EXPECT_FALSE(early);
  expect_origins("made anew: rank 0 could not shrink that of the last view");
  fake_library().control().late = nullptr;
  fake_library().control().fail = nullptr;
  expect_sums();
}

// From a peer's end to when NCCL is told to stop its kernels for good; a revoke is tried before.
TEST_F(ShrinkTest, AnAbortBeginsWithinASecond) {
  for (const bool keeps : {false, true}) {
    SCOPED_TRACE(keeps);
    begin_again();
    keeps_ = keeps;
    limits_.revoke = Limits().revoke;
    fake_library().control().gpus_move = false;
    std::atomic<TimePoint> ended, aborted;
    fake_library().control().late = [&](Phase phase, int) {
      if (phase != Phase::kRevoking) return ncclNumResults;
      still_.advance(std::chrono::milliseconds(1));
      return ncclInProgress;
    };
    fake_library().control().fail = [&](const std::string& call) {
      if (call == "ncclCommAbort") aborted = still_.now();
      return ncclSuccess;
    };
    connect(1, still_);
    std::jthread peer([&] {
      until([&] { return counts().enqueued == 1; });
      ended = still_.now();
      hosts_[0]->close(absl::UnavailableError("a peer is gone"));
    });
    EXPECT_TRUE(absl::IsUnavailable(all_reduce(0, still_)));
    peer.join();
    EXPECT_TRUE(rank(0).keep());
    EXPECT_EQ(counts().aborts, 1U);
    const Duration passed = aborted.load() - ended.load();
    EXPECT_GE(passed, keeps ? limits_.revoke : Duration());
    EXPECT_LT(passed, std::chrono::seconds(1));
    ranks_.clear();
    fake_library().control().late = nullptr;
    fake_library().control().fail = nullptr;
  }
}

TEST_F(ShrinkTest, HangsInARevoke) {
  fake_library().control().gpus_move = false;
  hang_in("ncclCommRevoke");
  connect(1, still_);
  std::jthread closer([&] {
    until([&] { return counts().enqueued == 1; });
    rank(0).close(absl::AbortedError("the view is over"));
  });
  EXPECT_EQ(all_reduce(0, still_), absl::AbortedError("the view is over"));
  {
    const Ticker ticker(still_, 1);
    EXPECT_FALSE(rank(0).keep());
  }
  EXPECT_EQ(stuck_, 1);
  EXPECT_FALSE(rank(0).end());
  EXPECT_EQ(stuck_, 1);
  EXPECT_FALSE(rank(0).offer().has_value());
  fake_library().control().gpus_move = true;
}

}  // namespace
}  // namespace paceline::nccl
