// Communicators that are kept when their use ends, and the next view's that are shrunk from them.

#include <atomic>

#include "runtime/collective/fault.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/nccl/shrink_world.h"

namespace paceline::nccl {
namespace {

using fake_nccl::Phase;

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

TEST_F(ShrinkTest, BusyCommunicatorIsRevokedAndShrunk) {
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
TEST_F(ShrinkTest, IdleCommunicatorIsKeptAsItIs) {
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
  library_ = binary_path(PACELINE_FAKE_NCCL_NO_REVOKE);
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
  library_ = binary_path(PACELINE_FAKE_NCCL_SMALL);
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
TEST_F(ShrinkTest, CommunicatorThatNotAllHoldIsNotShrunk) {
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
TEST_F(ShrinkTest, OrderlyLeaveCostsNobodyItsStep) {
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

TEST_F(ShrinkTest, UnclaimedCommunicatorExpires) {
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

TEST_F(ShrinkTest, OfferedCommunicatorDoesNotExpire) {
  connect(2, still_);
  keep_all();
  ASSERT_TRUE(rank(1).offer().has_value());
  still_.advance(limits_.kept + std::chrono::seconds(1));
  until([&] { return rank(0).state() == State::kGone; });
  EXPECT_EQ(rank(1).state(), State::kKept);
  EXPECT_TRUE(rank(1).end());
  EXPECT_EQ(counts().aborts, 2U);
}

}  // namespace
}  // namespace paceline::nccl
