#pragma once

// A schedule lowered to a device: its operators, and their places in one arena. Made once for a row count.
// One thread at a time.

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tensor/batch_areas.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/recordings.h"

namespace paceline::tensor {

class Executable {
 public:
  // `queue`: the device's (device.h); it outlives this.
  static absl::StatusOr<std::unique_ptr<Executable>> make(Schedule schedule, Device& device,
                                                          Precision precision, Queue* queue);

  std::size_t arena_bytes() const { return arena_bytes_; }
  std::size_t cache_bytes() const { return cache_bytes_; }  // of the key/value cache; 0: it has none
  // The operators' own memory: Lowering::shared_bytes() and allocate(), before the first bind().
  std::size_t shared_bytes() const { return lowering_->shared_bytes(); }
  absl::Status allocate() { return lowering_->allocate(); }
  // What was recorded is forgotten.
  void bind(std::byte* arena, const ExternalMemory& memory);
  // The forward pass is operations [0, forward_count()), the backward pass those behind it.
  std::size_t forward_count() const { return schedule_.forward_count; }
  std::size_t operation_count() const { return operators_.size(); }
  // Operations [begin, end): Operator::prepare(), and run().
  absl::Status prepare(std::size_t begin, std::size_t end, const RunContext& context);
  absl::Status run(std::size_t begin, std::size_t end, const RunContext& context,
                   OperationObserver* observer);
  // Of the gradient, in the order of their operations. Of a device with a queue as many of them together as
  // make it worth while to tell of them.
  std::span<const ReadyRange> ranges() const { return ranges_; }
  Recordings& recordings() { return recordings_; }

 private:
  Executable() = default;
  void plan(const Lowering& lowering);
  absl::Status run_one(std::size_t operation, const RunContext& context, OperationObserver* observer);
  absl::Status named(const absl::Status& status, std::size_t operation) const;
  void* address(TensorId tensor, std::byte* arena, const ExternalMemory& memory) const;

  Schedule schedule_;
  Queue* queue_ = nullptr;
  std::unique_ptr<Lowering> lowering_;  // may own what the operators share
  std::vector<std::unique_ptr<Operator>> operators_;
  std::vector<std::size_t> tensor_offsets_;                      // in the arena
  std::vector<std::size_t> scratch_offsets_, prepared_offsets_;  // by operation
  std::size_t arena_bytes_ = 0;
  std::size_t cache_bytes_ = 0, cache_element_bytes_ = 0;
  std::vector<ReadyRange> ranges_;
  Recordings recordings_;
};

}  // namespace paceline::tensor
