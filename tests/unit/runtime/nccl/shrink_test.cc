// Communicators that are kept when their use ends, and the next view's that are shrunk from them.

#include <atomic>

#include "runtime/collective/fault.h"
#include "runtime/nccl/communicator.h"
#include "tests/unit/runtime/nccl/nccl_world.h"

namespace paceline::nccl {
namespace {

using fake_nccl::Phase;
using ::testing::HasSubstr;

constexpr ncclResult_t kErrors[] = {ncclUnhandledCudaError, ncclSystemError,  ncclInternalError,
                                    ncclInvalidArgument,    ncclInvalidUsage, ncclRemoteError};

class ShrinkTest : public NcclTest {
 protected:
  ShrinkTest() { keeps_ = true; }

  fake_nccl::Counts counts() const { return fake_library(library_).counts(); }
  // Without what was counted and set before.
  void begin_again() {
    ranks_.clear();
    fake_library(library_).reset();
    stuck_ = 0;
  }
  void hang_in(const std::string& name) {
    fake_library().control().hang = [name](const std::string& call) { return call == name; };
  }
  void fail_in(const std::string& name, ncclResult_t error) {
    fake_library().control().fail = [=](const std::string& call) {
      return call == name ? error : ncclSuccess;
    };
  }
  absl::StatusOr<std::uint64_t> enqueue(int r, const cuda::DeviceBuffer& data, Deadline deadline) {
    return rank(r).enqueue_all_reduce(data.address(), 1, DType::kF32, ReduceOp::kSum, *gpu(r).stream,
                                      deadline);
  }
  absl::StatusOr<std::uint64_t> enqueue(int r, const cuda::DeviceBuffer& data) {
    return enqueue(r, data, later(clock_));
  }
  absl::Status all_reduce(int r, const Clock& clock) {
    const cuda::DeviceBuffer data = upload(r, {static_cast<float>(r + 1), 2});
    return rank(r).all_reduce(data.address(), 2, DType::kF32, ReduceOp::kSum, later(clock));
  }
  // Whoever shrank or not, it works.
  void expect_sums() {
    const int world = static_cast<int>(ranks_.size());
    run_ranks(world, [&](int r) {
      EXPECT_EQ(rank(r).rank(), r);
      EXPECT_EQ(rank(r).world_size(), world);
      EXPECT_EQ(rank(r).generation().value, view_);
      const cuda::DeviceBuffer data = upload(r, {static_cast<float>(r + 1)});
      ASSERT_TRUE(rank(r).all_reduce(data.address(), 1, DType::kF32, ReduceOp::kSum, later(clock_)).ok());
      EXPECT_EQ(download(r, data)[0], static_cast<float>(world * (world + 1) / 2));
    });
  }
  void keep_all() {
    for (auto& communicator : ranks_) {
      EXPECT_TRUE(communicator->keep());
      EXPECT_EQ(communicator->state(), State::kKept);
    }
  }
  void expect_origins(const std::string& origin) {
    for (auto& communicator : ranks_) EXPECT_EQ(communicator->origin(), origin);
  }
  // Ranks 0 and 2 are left of three whose kernels wait for each other.
  void lose_rank_1_at_work() {
    fake_library(library_).control().gpus_move = false;
    connect(3);
    std::jthread lost([&] {
      until([&] { return counts().enqueued == 3; });
      rank(1).close(absl::AbortedError("it is lost"));
    });
    run_ranks(3, [&](int r) {
      const absl::Status status = all_reduce(r, clock_);
      EXPECT_FALSE(status.ok());
      EXPECT_EQ(collective::faulty_rank(status), r == 1 ? std::nullopt : std::optional(1)) << status;
      EXPECT_TRUE(rank(r).keep());
    });
    fake_library(library_).control().gpus_move = true;
  }
};

TEST_F(ShrinkTest, TheNextViewsIsShrunkFromTheLast) {
  connect(4);
  expect_origins("made anew: no rank has an earlier one");
  expect_sums();
  keep_all();
  EXPECT_EQ(counts().aborts + counts().destroys + counts().revokes, 0U);
  const std::unique_ptr<NcclCommunicator> left = std::move(ranks_[1]);
  connect_from({0, 2, 3});
  expect_origins("shrunk from view 1");
  EXPECT_EQ(counts().inits, 4U);
  EXPECT_EQ(counts().shrinks, 3U);
  EXPECT_EQ(counts().aborts, 3U) << "the parents";
  expect_sums();
  // And on.
  keep_all();
  connect_from({1, 2});
  expect_origins("shrunk from view 2");
  expect_sums();
  EXPECT_EQ(counts().inits, 4U);
  EXPECT_EQ(counts().shrinks, 5U);
  EXPECT_EQ(counts().destroys, 0U);
}

TEST_F(ShrinkTest, WhatIsAtWorkIsRevokedAndShrunk) {
  lose_rank_1_at_work();
  for (auto& communicator : ranks_) EXPECT_EQ(communicator->state(), State::kKept);
  EXPECT_EQ(counts().revokes, 3U);
  EXPECT_EQ(counts().aborts, 0U);
  connect_from({0, 2});
  expect_origins("shrunk from view 1");
  EXPECT_EQ(counts().inits, 3U);
  EXPECT_EQ(counts().shrinks, 2U);
  EXPECT_EQ(counts().aborts, 3U);
  expect_sums();
}

// A peer that goes while nothing is under way: there is nothing to revoke.
TEST_F(ShrinkTest, WhatIsIdleIsKeptAsItIs) {
  connect(3);
  expect_sums();
  rank(1).close(absl::AbortedError("it is lost"));
  for (const int r : {0, 1, 2}) until([&] { return rank(r).state() == State::kKept; });
  EXPECT_EQ(counts().revokes, 0U);
  EXPECT_EQ(collective::faulty_rank(rank(0).closed()), 1);
  ranks_[1].reset();
  connect_from({0, 2});
  expect_origins("shrunk from view 1");
  expect_sums();
}

TEST_F(ShrinkTest, WithoutRevokeWhatIsAtWorkIsAborted) {
  library_ = PACELINE_FAKE_NCCL_NO_REVOKE;
  begin_again();
  lose_rank_1_at_work();
  for (auto& communicator : ranks_) EXPECT_EQ(communicator->state(), State::kGone);
  EXPECT_EQ(counts().aborts, 3U);
  connect_from({0, 2});
  expect_origins("made anew: no rank has an earlier one");
  EXPECT_EQ(counts().shrinks, 0U);
  expect_sums();
  // Idle, it is shrunk all the same.
  keep_all();
  connect_from({1});
  expect_origins("shrunk from view 2");
  expect_sums();
}

TEST_F(ShrinkTest, WithoutShrinkNothingIsKept) {
  library_ = PACELINE_FAKE_NCCL_SMALL;
  begin_again();
  connect(2);
  for (auto& communicator : ranks_) {
    EXPECT_TRUE(communicator->keep());
    EXPECT_EQ(communicator->state(), State::kGone);
  }
  EXPECT_EQ(counts().destroys, 2U);
  connect_from({1});
  expect_origins("made anew: no rank has an earlier one");
  expect_sums();
}

// Members that join, that hold nothing, or something else: all make one anew, and first let go of the old.
TEST_F(ShrinkTest, WhatNotAllHoldIsNotShrunk) {
  const struct {
    std::vector<int> lose;  // what they have kept
    std::vector<int> next;
    const char* why;
  } cases[] = {
      {{1}, {0, 1}, "rank 1 has no earlier one"},     // lost its own
      {{2}, {0, 1, 2}, "rank 2 has no earlier one"},  // a joiner in the place of one that left
      {{}, {0, 1, 2}, "no rank has left"},
      {{}, {2, 0}, "the ranks are in another order"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.why);
    begin_again();
    connect(3);
    keep_all();
    for (const int r : c.lose) ranks_[static_cast<std::size_t>(r)].reset();
    std::atomic<bool> early{false};
    fake_library().control().fail = [&](const std::string& call) {
      if (call == "ncclCommInitRankScalable" && counts().aborts < c.lose.size() + 1) early = true;
      return ncclSuccess;
    };
    connect_from(c.next);
    EXPECT_FALSE(early);
    expect_origins(std::string("made anew: ") + c.why);
    EXPECT_EQ(counts().shrinks, 0U);
    EXPECT_EQ(counts().inits, 3 + c.next.size());
    expect_sums();
    fake_library().control().fail = nullptr;
  }
}

TEST_F(ShrinkTest, AnOlderViewsIsNotShrunkWithALaterOnes) {
  connect(3);
  keep_all();
  std::unique_ptr<NcclCommunicator> old = std::move(ranks_[0]);
  connect_from({0, 1, 2});
  keep_all();
  ranks_[0] = std::move(old);
  connect_from({0, 1});
  expect_origins("made anew: rank 1 has that of view 2, and rank 0 that of view 1");
  expect_sums();
}

// Its last operation is done, another's GPU is still at it.
TEST_F(ShrinkTest, WhoGoesInGoodOrderCostsNobodyItsStep) {
  std::atomic<bool> slow{true};
  std::atomic<int> asked{0};
  fake_library().control().slow = [&](int rank) { return rank == 1 && slow; };
  fake_library().control().late = [&](Phase phase, int rank) {
    if (phase == Phase::kIdle && rank == 1) ++asked;
    return ncclNumResults;
  };
  connect(2);
  std::vector<cuda::DeviceBuffer> data;
  for (const int r : {0, 1}) {
    data.push_back(upload(r, {2}));
    ASSERT_TRUE(enqueue(r, data.back()).ok());
  }
  EXPECT_EQ(rank(0).wait(1, later(clock_)), absl::OkStatus());
  EXPECT_TRUE(rank(0).keep());
  // Longer than what is about to end takes.
  until([&, enough = asked + 1000] { return asked > enough || !rank(1).closed().ok(); });
  slow = false;
  EXPECT_EQ(rank(1).wait(1, later(clock_)), absl::OkStatus());
  EXPECT_EQ(download(1, data[1])[0], 4);
  // What comes then is without it.
  const absl::Status status = rank(1).barrier(later(clock_));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(collective::faulty_rank(status), 0);
  EXPECT_EQ(counts().revokes + counts().aborts, 0U);
}

// The others have not come to its operation, and would not for an hour.
TEST_F(ShrinkTest, ItsUseEndsWhileItWaitsForOthers) {
  for (const bool ends : {false, true}) {
    SCOPED_TRACE(ends);
    begin_again();
    connect(2);
    const cuda::DeviceBuffer data = upload(0, {1});
    ASSERT_TRUE(enqueue(0, data, Deadline::after(clock_.now(), std::chrono::hours(1))).ok());
    EXPECT_TRUE(ends ? rank(0).end() : rank(0).keep());
    EXPECT_EQ(rank(0).state(), ends ? State::kGone : State::kKept);
    EXPECT_TRUE(absl::IsAborted(rank(0).closed())) << rank(0).closed();
    EXPECT_EQ(collective::faulty_rank(rank(1).closed()), 0);
    EXPECT_EQ(stuck_, 0);
    EXPECT_EQ(counts().revokes, 0U);
  }
}

// ---- until nobody comes

TEST_F(ShrinkTest, NobodyComesForIt) {
  connect(2, still_);
  keep_all();
  EXPECT_TRUE(absl::IsAborted(rank(0).barrier(later(still_))));
  still_.advance(limits_.kept + std::chrono::seconds(1));
  for (const int r : {0, 1}) until([&] { return rank(r).state() == State::kGone; });
  EXPECT_EQ(counts().aborts, 2U);
  // Nor does anything else of it stay.
  until([&] { return cuda::fake().counts().events == 0; });
  until([&] { return cuda::fake().counts().streams == 2; });  // the test's
  EXPECT_TRUE(rank(0).keep());
  connect_from({0}, still_);
  expect_origins("made anew: no rank has an earlier one");
}

TEST_F(ShrinkTest, WhatIsOfferedDoesNotExpire) {
  connect(2, still_);
  keep_all();
  ASSERT_TRUE(rank(1).offer().has_value());
  still_.advance(limits_.kept + std::chrono::seconds(1));
  until([&] { return rank(0).state() == State::kGone; });
  EXPECT_EQ(rank(1).state(), State::kKept);
  EXPECT_TRUE(rank(1).end());
  EXPECT_EQ(counts().aborts, 2U);
}

// ---- what can go wrong

TEST_F(ShrinkTest, EveryErrorOfAShrinkOnAllRanks) {
  for (const std::string name : {"ncclCommShrink", "late"}) {
    for (const ncclResult_t error : kErrors) {
      SCOPED_TRACE(name + " " + std::to_string(error));
      begin_again();
      connect(3);
      keep_all();
      fail_in(name, error);
      if (name == "late") {
        fake_library().control().late = [error](Phase phase, int) {
          return phase == Phase::kShrinking ? error : ncclNumResults;
        };
      }
      connect_from({0, 2});
      expect_origins("made anew: rank 0 could not shrink that of the last view");
      fake_library().control().late = nullptr;
      fake_library().control().fail = nullptr;
      expect_sums();
      EXPECT_EQ(counts().communicators, 2U);
      EXPECT_EQ(counts().inits, 3U + 2U);
    }
  }
}

// The others wait for it in NCCL, until their limit; nobody is lost.
TEST_F(ShrinkTest, OneRanksErrorIsToldToAll) {
  for (const bool late : {false, true}) {
    SCOPED_TRACE(late);
    begin_again();
    connect(3, still_);
    keep_all();
    limits_.shrink = std::chrono::seconds(5);
    std::atomic<int> calls{0};
    std::atomic<bool> failed{false};
    fake_library().control().fail = [&](const std::string& call) {
      return !late && call == "ncclCommShrink" && calls++ == 0 ? ncclSystemError : ncclSuccess;
    };
    fake_library().control().questions = 1000;
    fake_library().control().late = [&](Phase phase, int) {
      if (phase != Phase::kShrinking) return ncclNumResults;
      if (late && !failed.exchange(true)) return ncclSystemError;
      still_.advance(std::chrono::milliseconds(100));
      return ncclInProgress;
    };
    connect_from({0, 1}, still_);
    EXPECT_THAT(rank(0).origin(), HasSubstr("could not shrink that of the last view"));
    EXPECT_EQ(rank(0).origin(), rank(1).origin());
    EXPECT_EQ(counts().communicators, 2U);
    fake_library().control().questions = 2;
    fake_library().control().late = nullptr;
    fake_library().control().fail = nullptr;
    expect_sums();
  }
}

// A rank that has its child gives it up where another has none.
TEST_F(ShrinkTest, OneThatIsThereIsAbortedWhereAnothersIsNot) {
  connect(3, still_);
  keep_all();
  fake_library().control().late = [&](Phase phase, int rank) {
    if (phase != Phase::kShrinking || rank != 1) return ncclNumResults;
    return counts().shrunk == 1 ? ncclRemoteError : ncclInProgress;
  };
  connect_from({0, 1}, still_);
  fake_library().control().late = nullptr;
  expect_origins("made anew: rank 1 could not shrink that of the last view");
  EXPECT_EQ(counts().shrunk, 1U);
  EXPECT_EQ(counts().aborts, 5U) << "of two ranks parent and child, and what the third has kept";
  EXPECT_EQ(counts().communicators, 2U);
  expect_sums();
}

TEST_F(ShrinkTest, APeersEndWhileItShrinks) {
  connect(2);
  keep_all();
  fake_library().control().late = [&](Phase phase, int) {
    if (phase == Phase::kShrinking) hosts_[0]->close(absl::UnavailableError("a peer is gone"));
    return phase == Phase::kShrinking ? ncclInProgress : ncclNumResults;
  };
  EXPECT_EQ(create_from({0}, clock_)[0].status(), absl::UnavailableError("a peer is gone"));
  EXPECT_EQ(counts().aborts, 2U) << "parent and child";
  EXPECT_EQ(stuck_, 0);
}

// A revoke that fails, early or late, or takes too long: it is aborted.
TEST_F(ShrinkTest, WhatCannotBeRevokedIsAborted) {
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
TEST_F(ShrinkTest, WhatIsNotEnqueuedYetOrHasFailedIsAborted) {
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

// Parent and child, one after the other, and each may take its time.
TEST_F(ShrinkTest, TheEndOfTwoIsWaitedFor) {
  // Counts how often it is asked.
  struct Asked final : Clock {
    explicit Asked(testing::FakeClock& of) : clock(of) {}
    TimePoint now() const override {
      ++times;
      return clock.now();
    }
    WallTime wall_now() const override { return clock.wall_now(); }
    testing::FakeClock& clock;
    mutable std::atomic<int> times{0};
  };
  const Asked clock(still_);
  connect(2, clock);
  keep_all();
  ranks_[1].reset();
  limits_.leaving = limits_.revoke = Duration();
  fake_library().control().late = [&](Phase phase, int) {
    if (phase == Phase::kShrinking) hosts_[0]->close(absl::UnavailableError("a peer is gone"));
    return phase == Phase::kShrinking ? ncclInProgress : ncclNumResults;
  };
  fake_library().control().fail = [&](const std::string& call) {
    if (call != "ncclCommAbort") return ncclSuccess;
    // Until its end is waited for.
    until([&, enough = clock.times + 20] { return clock.times > enough; });
    still_.advance(limits_.abort * 9 / 10);
    until([&, enough = clock.times + 2] { return clock.times > enough || stuck_ > 0; });
    return ncclSuccess;
  };
  EXPECT_EQ(create_from({0}, clock)[0].status(), absl::UnavailableError("a peer is gone"));
  EXPECT_EQ(counts().aborts, 3U);
  EXPECT_EQ(stuck_, 0);
}

// ---- calls that never return

TEST_F(ShrinkTest, HangsWhileItShrinks) {
  // The last is the parent's, when its child is there.
  for (const std::string name : {"ncclCommShrink", "ncclCommGetAsyncError", "ncclCommAbort"}) {
    SCOPED_TRACE(name);
    begin_again();
    connect(2, still_);
    keep_all();
    ranks_[1].reset();
    hang_in(name);
    absl::Status status;
    {
      const Ticker ticker(still_, 1);
      status = create_from({0}, still_)[0].status();
    }
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name + " of NCCL has not returned"));
    EXPECT_EQ(stuck_, 1);
    fake_library().release();
    until([&] { return gpus_[0]->context.use_count() == 2; });
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

// Where it is not shrunk, its end is waited for before the next is made.
TEST_F(ShrinkTest, HangsInTheReleaseOfWhatIsNotShrunk) {
  connect(1, still_);
  keep_all();
  hang_in("ncclCommAbort");
  absl::Status status;
  {
    const Ticker ticker(still_, 1);
    status = create_from({0}, still_)[0].status();
  }
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_EQ(stuck_, 1);
  EXPECT_EQ(counts().inits, 1U);
}

}  // namespace
}  // namespace paceline::nccl
