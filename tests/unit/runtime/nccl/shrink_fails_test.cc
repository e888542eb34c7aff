// Shrinks that fail, hang, or lose a rank.

#include <atomic>

#include "tests/unit/runtime/nccl/shrink_world.h"

namespace paceline::nccl {
namespace {

using fake_nccl::Phase;
using ::testing::HasSubstr;

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

// Parent and child, one after the other, and each may take its time.
TEST_F(ShrinkTest, TheEndOfTwoIsWaitedFor) {
  // Counts how often it is asked.
  struct Asked final : Clock {
    explicit Asked(FakeClock& of) : clock(of) {}
    TimePoint now() const override {
      ++times;
      return clock.now();
    }
    WallTime wall_now() const override { return clock.wall_now(); }
    FakeClock& clock;
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
