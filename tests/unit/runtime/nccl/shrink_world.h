#pragma once

// Ranks that keep their communicators when their use ends, for the next view's.

#include <optional>
#include <string>
#include <thread>

#include "runtime/collective/fault.h"
#include "tests/unit/runtime/nccl/nccl_world.h"

namespace paceline::nccl {

inline constexpr ncclResult_t kErrors[] = {ncclUnhandledCudaError, ncclSystemError,  ncclInternalError,
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

}  // namespace paceline::nccl
