// A communicator of one rank: what NCCL itself can show where there is a single GPU (scripts/gpu-suite).

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/collective/fabric.h"
#include "runtime/nccl/communicator.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/nccl/nccl_world.h"

namespace paceline::nccl {
namespace {

class NcclOneRank : public cuda::GpuTest {
 protected:
  NcclOneRank() {
    if (!cuda::on_real_gpu()) fake_library().reset();
    nccl::Setup setup;
    setup.library = must(Library::open(cuda::on_real_gpu() ? "" : binary_path(PACELINE_FAKE_NCCL)));
    setup.context = context_;
    setup.host = std::move(collective::make_in_process_group(1, Generation{1}, clock_).front());
    setup.limits.leaving = setup.limits.abort = std::chrono::seconds(60);
    rank_ = must(NcclCommunicator::create(std::move(setup), clock_, later()));
  }
  // Its stream and memory go before GpuTest looks what is left.
  void TearDown() override {
    rank_.reset();
    if (!cuda::on_real_gpu()) {
      EXPECT_THAT(fake_library().problems(), ::testing::IsEmpty());
    }
    GpuTest::TearDown();
  }

  Deadline later() const { return Deadline::after(clock_.now(), std::chrono::seconds(60)); }

  // Values that every type holds, and every reduction of one rank leaves as they are.
  template <typename T>
  void every_collective(DType dtype) {
    SCOPED_TRACE(dtype_name(dtype));
    std::vector<T> values;
    for (int i = 0; i < 1003; ++i) values.push_back(T(static_cast<float>(i % 64)));
    const auto data = this->template upload<T>(values);
    finish();
    const auto expect_same = [&](const absl::Status& status, const char* what) {
      EXPECT_TRUE(status.ok()) << what << ": " << status;
      const std::vector<T> now = this->download(data);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(static_cast<float>(now[i]), static_cast<float>(values[i])) << what << ", element " << i;
    };
    const std::size_t n = values.size();
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax}) {
      expect_same(rank_->all_reduce(data.data(), n, dtype, op, later()), "all_reduce");
      expect_same(rank_->reduce_scatter(data.data(), n, dtype, op, later()), "reduce_scatter");
    }
    expect_same(rank_->all_gather(data.data(), n, dtype, later()), "all_gather");
    expect_same(rank_->broadcast(data.data(), n, dtype, 0, later()), "broadcast");
  }

  std::unique_ptr<NcclCommunicator> rank_;
};

TEST_F(NcclOneRank, EveryCollectiveOfEveryType) {
  EXPECT_EQ(rank_->state(), State::kReady);
  every_collective<float>(DType::kF32);
  every_collective<BFloat16>(DType::kBF16);
  every_collective<std::int32_t>(DType::kI32);
  EXPECT_TRUE(rank_->barrier(later()).ok());
}

TEST_F(NcclOneRank, BucketsBehindAStreamAndAStreamBehindBuckets) {
  constexpr std::size_t kElements = 1 << 12, kBuckets = 5;
  const std::vector<float> values(kElements * kBuckets, 3);
  const auto from = upload(values), data = array<float>(values.size()), copy = array<float>(values.size());
  ASSERT_TRUE(stream_->copy(data.data(), from.data(), values.size() * 4).ok());
  std::uint64_t last = 0;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    last = must(rank_->enqueue_all_reduce(data.data() + b * kElements, kElements, DType::kF32,
                                          ReduceOp::kMean, *stream_, later()));
  }
  ASSERT_TRUE(rank_->join(*stream_, later()).ok());
  ASSERT_TRUE(stream_->copy(copy.data(), data.data(), values.size() * 4).ok());
  EXPECT_TRUE(rank_->wait(last, later()).ok());
  EXPECT_EQ(download(copy), values);
}

TEST_F(NcclOneRank, ItEndsByItself) {
  const auto data = upload(std::vector<float>(100, 1));
  finish();
  ASSERT_TRUE(rank_->all_reduce(data.data(), 100, DType::kF32, ReduceOp::kSum, later()).ok());
  EXPECT_TRUE(rank_->end());
  EXPECT_EQ(rank_->state(), State::kGone);
}

TEST_F(NcclOneRank, ClosedItIsAborted) {
  rank_->close(absl::UnavailableError("worker-1 is gone"));
  const auto data = upload(std::vector<float>(100, 1));
  finish();
  EXPECT_EQ(rank_->all_reduce(data.data(), 100, DType::kF32, ReduceOp::kSum, later()).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(rank_->end());
}

}  // namespace
}  // namespace paceline::nccl
