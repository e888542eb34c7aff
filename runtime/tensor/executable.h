#pragma once

// A schedule lowered to a device: its operators, and their places in one arena. Made once for a row count.
// One thread at a time.

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/tensor/device.h"

namespace paceline::tensor {

// The memory outside of the arena.
struct ExternalMemory {
  float* inputs = nullptr;
  std::int32_t* tokens = nullptr;
  std::int32_t* labels = nullptr;
  float* offsets = nullptr;
  float* input_gradients = nullptr;
  float* offset_gradients = nullptr;
  float* scores = nullptr;
  float* weights = nullptr;
  float* gradients = nullptr;
  double* result = nullptr;
};

class Executable {
 public:
  static absl::StatusOr<std::unique_ptr<Executable>> make(Schedule schedule, Device& device,
                                                          Precision precision);

  std::size_t arena_bytes() const { return arena_bytes_; }
  void bind(std::byte* arena, const ExternalMemory& memory);
  void forward(const RunContext& context, OperationObserver* observer);
  void backward(const RunContext& context, const Program::OnReady& on_ready, OperationObserver* observer);

 private:
  Executable() = default;
  void plan(const Lowering& lowering);
  void run(std::size_t operation, const RunContext& context, OperationObserver* observer);
  void* address(TensorId tensor, std::byte* arena, const ExternalMemory& memory) const;

  Schedule schedule_;
  std::unique_ptr<Lowering> lowering_;  // may own what the operators share
  std::vector<std::unique_ptr<Operator>> operators_;
  std::vector<std::size_t> tensor_offsets_;   // in the arena
  std::vector<std::size_t> scratch_offsets_;  // by operation
  std::size_t arena_bytes_ = 0;
};

}  // namespace paceline::tensor
