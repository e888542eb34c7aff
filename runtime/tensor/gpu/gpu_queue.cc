#include "runtime/tensor/gpu/gpu_queue.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace paceline::tensor::gpu {

namespace {
// No pass takes so long: a GPU that is still at it hangs.
constexpr Duration kLongest = std::chrono::minutes(10);
}  // namespace

absl::StatusOr<std::unique_ptr<GpuQueue>> GpuQueue::open(std::shared_ptr<const cuda::Context> context) {
  PL_ASSIGN_OR_RETURN(cuda::Stream stream, cuda::Stream::create(context));
  return std::unique_ptr<GpuQueue>(new GpuQueue(std::move(context), std::move(stream)));
}

GpuQueue::~GpuQueue() {
  if (context_->enter().ok()) stream_.finish(clock_, Deadline::after(clock_.now(), kLongest)).IgnoreError();
}

absl::Status GpuQueue::upload(void* to, std::span<const std::byte> from) {
  return stream_.to_device(to, from);
}

absl::Status GpuQueue::download(std::span<std::byte> to, const void* from) {
  return stream_.to_host(to, from);
}

absl::Status GpuQueue::set_mark(std::size_t number) {
  while (marks_.size() <= number) {
    PL_ASSIGN_OR_RETURN(cuda::Event mark, cuda::Event::create(context_, cuda::Event::Kind::kOrder));
    marks_.push_back(std::move(mark));
  }
  return marks_[number].record(stream_);
}

absl::Status GpuQueue::wait_for_mark(std::size_t number) {
  PL_CHECK(number < marks_.size(), "a mark is set before it is waited for");
  return marks_[number].wait(clock_, Deadline::after(clock_.now(), kLongest));
}

}  // namespace paceline::tensor::gpu
