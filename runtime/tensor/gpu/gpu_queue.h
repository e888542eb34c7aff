#pragma once

// A program's stream, the events that are its marks, the bf16 copy of its weights, and the CUDA graphs of
// what it repeats.
//
// Repeated work is added plainly the first time, recorded as a graph the second time, and launched as such
// from then on. Where the driver makes no graph of it, nothing of this queue is recorded any more; that is
// told once.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/cuda/stream.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/gpu/half_weights.h"

namespace paceline::tensor::gpu {

// Whether a queue makes graphs, and who hears why it does no more.
struct GraphUse {
  bool on = true;
  std::function<void(const absl::Status& why)> refused = nullptr;
};

class GpuQueue final : public Queue {
 public:
  static absl::StatusOr<std::unique_ptr<GpuQueue>> open(std::shared_ptr<const cuda::Context> context,
                                                        GraphUse graphs);
  // Waits for what is under way: its memory may go afterwards.
  ~GpuQueue() override;

  absl::Status upload(void* to, std::span<const std::byte> from) override;
  absl::Status download(std::span<std::byte> to, const void* from) override;
  absl::Status copy(void* to, const void* from, std::size_t bytes) override;
  absl::Status clear(void* address, std::size_t bytes) override;
  absl::Status set_mark(std::size_t number) override;
  absl::Status wait_for_mark(std::size_t number) override;
  absl::Status follow(const Queue& other, std::size_t number) override;
  absl::Status repeat(std::unique_ptr<Recording>& kept, absl::FunctionRef<absl::Status()> add) override;

  absl::StatusOr<bool> make_time_marks(std::size_t count) override;
  absl::Status set_time_mark(std::size_t number) override;
  absl::StatusOr<std::optional<Duration>> time_between(std::size_t from, std::size_t to) override;

  std::size_t half_weight_bytes() const override { return half_weights_.bytes(); }

  cuda::Stream& stream() { return stream_; }
  const std::shared_ptr<const cuda::Context>& context() const { return context_; }
  HalfWeights& half_weights() { return half_weights_; }

 private:
  GpuQueue(std::shared_ptr<const cuda::Context> context, cuda::Stream stream, GraphUse graphs)
      : context_(std::move(context)), stream_(std::move(stream)), graphs_(std::move(graphs)) {}

  const std::shared_ptr<const cuda::Context> context_;
  cuda::Stream stream_;
  GraphUse graphs_;
  std::map<std::size_t, cuda::Event> marks_;
  std::vector<cuda::Event> time_marks_;
  HalfWeights half_weights_;
  SystemClock clock_;
};

}  // namespace paceline::tensor::gpu
