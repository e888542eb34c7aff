#pragma once

// A schedule lowered to a device: its operators, and their places in one arena. Made once for a row count.
// One thread at a time.

#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tensor/batch_areas.h"
#include "runtime/tensor/device.h"

namespace paceline::tensor {

class Executable {
 public:
  // `queue`: the device's (device.h); it outlives this.
  static absl::StatusOr<std::unique_ptr<Executable>> make(Schedule schedule, Device& device,
                                                          Precision precision, Queue* queue);

  std::size_t arena_bytes() const { return arena_bytes_; }
  void bind(std::byte* arena, const ExternalMemory& memory);
  absl::Status forward(const RunContext& context, OperationObserver* observer);
  // `on_range` hears of gradients whose last operation has run, or was added to the queue.
  using OnRange = absl::FunctionRef<absl::Status(std::size_t begin, std::size_t end)>;
  absl::Status backward(const RunContext& context, OnRange on_range, OperationObserver* observer);
  std::span<const ReadyRange> ranges() const { return schedule_.ready; }

 private:
  Executable() = default;
  void plan(const Lowering& lowering);
  absl::Status run(std::size_t operation, const RunContext& context, OperationObserver* observer);
  void* address(TensorId tensor, std::byte* arena, const ExternalMemory& memory) const;

  Schedule schedule_;
  Queue* queue_ = nullptr;
  std::unique_ptr<Lowering> lowering_;  // may own what the operators share
  std::vector<std::unique_ptr<Operator>> operators_;
  std::vector<std::size_t> tensor_offsets_;   // in the arena
  std::vector<std::size_t> scratch_offsets_;  // by operation
  std::size_t arena_bytes_ = 0;
};

}  // namespace paceline::tensor
