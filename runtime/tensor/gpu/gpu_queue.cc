#include "runtime/tensor/gpu/gpu_queue.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/polling.h"

namespace paceline::tensor::gpu {

namespace {
struct GraphRecording final : Recording {
  std::optional<cuda::Graph> graph;  // nothing: the work was added once
};
}  // namespace

absl::StatusOr<std::unique_ptr<GpuQueue>> GpuQueue::open(std::shared_ptr<const cuda::Context> context,
                                                         GraphUse graphs) {
  PL_ASSIGN_OR_RETURN(cuda::Stream stream, cuda::Stream::create(context));
  return std::unique_ptr<GpuQueue>(new GpuQueue(std::move(context), std::move(stream), std::move(graphs)));
}

GpuQueue::~GpuQueue() {
  if (context_->enter().ok())
    stream_.finish(clock_, Deadline::after(clock_.now(), cuda::kLongestWork)).IgnoreError();
}

absl::Status GpuQueue::upload(void* to, std::span<const std::byte> from) {
  return stream_.to_device(to, from);
}

absl::Status GpuQueue::download(std::span<std::byte> to, const void* from) {
  return stream_.to_host(to, from);
}

absl::Status GpuQueue::copy(void* to, const void* from, std::size_t bytes) {
  return stream_.copy(to, from, bytes);
}

absl::Status GpuQueue::clear(void* address, std::size_t bytes) {
  return stream_.clear(address, bytes);
}

absl::Status GpuQueue::set_mark(std::size_t number) {
  auto mark = marks_.find(number);
  if (mark == marks_.end()) {
    PL_ASSIGN_OR_RETURN(cuda::Event made, cuda::Event::create(context_, cuda::Event::Kind::kOrder));
    mark = marks_.emplace(number, std::move(made)).first;
  }
  return mark->second.record(stream_);
}

absl::Status GpuQueue::wait_for_mark(std::size_t number) {
  const auto mark = marks_.find(number);
  PL_CHECK(mark != marks_.end(), "a mark is set before it is waited for");
  return mark->second.wait(clock_, Deadline::after(clock_.now(), cuda::kLongestWork));
}

absl::Status GpuQueue::repeat(std::unique_ptr<Recording>& kept, absl::FunctionRef<absl::Status()> add) {
  if (!graphs_.on) return add();
  if (kept == nullptr) {
    kept = std::make_unique<GraphRecording>();
    return add();
  }
  std::optional<cuda::Graph>& graph = static_cast<GraphRecording&>(*kept).graph;
  if (graph.has_value()) return graph->launch(stream_);
  absl::StatusOr<cuda::Graph> made = cuda::Graph::record(stream_, add);
  if (made.ok()) return graph.emplace(*std::move(made)).launch(stream_);
  // None of it was done. What is wrong without a graph, too, is the work's own error.
  graphs_.on = false;
  PL_RETURN_IF_ERROR(add());
  if (graphs_.refused != nullptr) graphs_.refused(made.status());
  return absl::OkStatus();
}

absl::Status GpuQueue::follow(const Queue& other, std::size_t number) {
  const auto& marks = static_cast<const GpuQueue&>(other).marks_;
  const auto mark = marks.find(number);
  PL_CHECK(mark != marks.end(), "a mark is set before it is followed");
  return stream_.wait_for(mark->second);
}

absl::StatusOr<bool> GpuQueue::make_time_marks(std::size_t count) {
  PL_CHECK(time_marks_.empty(), "time marks are made once");
  std::vector<cuda::Event> marks;
  for (std::size_t i = 0; i < count; ++i) {
    PL_ASSIGN_OR_RETURN(cuda::Event made, cuda::Event::create(context_, cuda::Event::Kind::kTiming));
    marks.push_back(std::move(made));
  }
  time_marks_ = std::move(marks);
  return true;
}

absl::Status GpuQueue::set_time_mark(std::size_t number) {
  return time_marks_[number].record(stream_);
}

absl::StatusOr<std::optional<Duration>> GpuQueue::time_between(std::size_t from, std::size_t to) {
  return cuda::time_between(*context_, time_marks_[from], time_marks_[to]);
}

}  // namespace paceline::tensor::gpu
