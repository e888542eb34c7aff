#pragma once

// Where a program runs: makes the operators of a schedule, and owns the kind of memory that they work on. One
// implementation now (cpu/); a GPU joins as another. The compiler plans memory and order, the device chooses
// layouts and algorithms.
//
// Life of a program's schedule: lower() each operation in order -> bytes() and needs() -> the compiler plans
// -> bind() -> run() once a step.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

// What changes from one run to the next.
struct RunContext {
  std::uint64_t weights_version =
      0;            // of the bound weights: forms made from them (packed, bf16) are made anew when it changes
  float scale = 1;  // backward: of the loss
  bool accumulate = false;  // backward: add to the parameters' gradients
};

// One operation, for fixed shapes. Allocates nothing after its first run.
class Operator {
 public:
  // May output `shared_output` lie where input `shared_input` lies?
  enum class Sharing : std::uint8_t {
    kNever,
    kMay,     // if nobody reads the input afterwards
    kAlways,  // it is the same memory: run() does nothing
  };
  struct Needs {
    std::size_t scratch_bytes = 0;  // undefined content, for the time of one run
    Sharing sharing = Sharing::kNever;
    std::size_t shared_input = 0;
    std::size_t shared_output = 0;
  };
  struct Addresses {
    std::vector<void*> inputs;  // in the order of the operation
    std::vector<void*> outputs;
    void* scratch = nullptr;  // 64-byte aligned
  };

  virtual ~Operator() = default;
  virtual Needs needs() const = 0;
  virtual void bind(const Addresses& addresses) = 0;
  virtual void run(const RunContext& context) = 0;
};

// Makes the operators of one schedule, in its order, and remembers the layouts of its tensors. The schedule
// outlives it.
class Lowering {
 public:
  virtual ~Lowering() = default;
  // UNIMPLEMENTED where the device lacks the operation.
  virtual absl::StatusOr<std::unique_ptr<Operator>> lower(const Operation& operation) = 0;
  // Of an arena tensor, once the operation that makes it was lowered.
  virtual std::size_t bytes(TensorId tensor) const = 0;
};

// Memory of a device, that the host also reaches. 64-byte aligned, zeros at first.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::byte* data() const = 0;
};

// Thread-safe; outlives its programs.
class Device {
 public:
  virtual ~Device() = default;
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) = 0;
  virtual std::unique_ptr<Lowering> begin(const Schedule& schedule, Precision precision) = 0;
  // Around every call that makes or runs operators, on the calling thread: a device's per-thread settings.
  virtual void enter() = 0;
};

}  // namespace paceline::tensor
