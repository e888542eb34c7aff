#pragma once

// Where a program runs: makes the operators of a schedule, and owns the kind of memory that they work on
// (cpu/ and gpu/). The compiler plans memory and order, the device chooses layouts and algorithms.
//
// Life of a program's schedule: lower() each operation in order -> bytes() and needs() -> the compiler plans
// -> bind() -> prepare(), where there is a queue, and run() (or what the queue keeps of it) each time.
//
// On the CPU an operator has done its work when run() returns, and its memory is the host's. A GPU's memory
// is its own, and its operators add work to a queue, of which the program has one: the program copies what
// the host gives and takes, and waits for marks.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/device_timer.h"
#include "runtime/tensor/join.h"
#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

// What changes from one run to the next.
struct RunContext {
  std::uint64_t weights_version =
      0;            // of the bound weights: forms made from them (packed, bf16) are made anew when it changes
  float scale = 1;  // of the loss: in a backward pass, and in the forward pass of a Program::pass()
  bool accumulate = false;               // backward: add to the parameters' gradients
  std::span<const std::int32_t> tokens;  // of the whole batch memory, on the host's side
  bool whole_pass = false;  // both passes of a Program::pass(): its scale is known from the begin on

  // Whether all that run() may look at on a device with a queue is the same: it adds the same work then.
  bool repeats(const RunContext& other) const {
    return scale == other.scale && accumulate == other.accumulate && whole_pass == other.whole_pass;
  }
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
    std::size_t prepared_bytes = 0;  // what prepare() leaves for run()
  };
  struct Addresses {
    std::vector<void*> inputs;  // in the order of the operation
    std::vector<void*> outputs;
    void* scratch = nullptr;   // 64-byte aligned
    void* prepared = nullptr;  // likewise
  };

  virtual ~Operator() = default;
  virtual Needs needs() const = 0;
  virtual void bind(const Addresses& addresses) = 0;
  // Of a device with a queue, before the pass or the half of it that the operator is of: what the host has to
  // do for each run, and what is to be done only where the weights or the batch are other ones. By then the
  // device has done what came of the preparation before.
  virtual absl::Status prepare(const RunContext& /*context*/) { return absl::OkStatus(); }
  // A device with a queue adds to it, the same work each time that the context repeats(); that may be kept
  // and added again without a run (Queue::repeat). Errors: the device's; the CPU has none.
  virtual absl::Status run(const RunContext& context) = 0;
};
// An operator whose result may lie where its first input does.
inline constexpr Operator::Needs kInPlace{0, Operator::Sharing::kMay, 0, 0};

// Makes the operators of one schedule, in its order, and remembers the layouts of its tensors. The schedule
// outlives it.
class Lowering {
 public:
  virtual ~Lowering() = default;
  // UNIMPLEMENTED where the device lacks the operation.
  virtual absl::StatusOr<std::unique_ptr<Operator>> lower(const Operation& operation) = 0;
  // Of an arena tensor, once the operation that makes it was lowered.
  virtual std::size_t bytes(TensorId tensor) const = 0;
  // The operators share so much of the host's memory beside the arena, once all are made; allocate() takes
  // it, before one of them is bound. RESOURCE_EXHAUSTED.
  virtual std::size_t shared_bytes() const { return 0; }
  virtual absl::Status allocate() { return absl::OkStatus(); }
};

// 64-byte aligned, zeros at first. Of a device with a queue, the host can't follow the address.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::byte* data() const = 0;
};

// Contract: compiler.h.
struct KeyValueCache {
  std::unique_ptr<DeviceMemory> memory;  // null: nobody wanted it yet
  std::size_t bytes = 0;
};

// Whose marks have which numbers, where several use one queue.
inline constexpr std::size_t kMarksOfPrograms = 0;
inline constexpr std::size_t kMarksOfState = std::size_t{1} << 20;
inline constexpr std::size_t kMarksOfExchange = std::size_t{2} << 20;

// Work that a queue was given before, as it keeps it. It is let go of by who repeats it, when something of
// it changes: an address, a size.
class Recording {
 public:
  virtual ~Recording() = default;
};

// The order of work on a device that has its own memory: of one program, or of several that share it.
// Everything added returns at once and is done in the order of its adding. One thread at a time. Errors:
// RESOURCE_EXHAUSTED, UNAVAILABLE (the device is lost), INTERNAL; also of earlier work. After one the device
// can't be used any more.
class Queue {
 public:
  Queue() : timer_(*this) {}
  virtual ~Queue() = default;
  // The host's side stays, and a download's is not read, until a mark behind it is reached.
  virtual absl::Status upload(void* to, std::span<const std::byte> from) = 0;
  virtual absl::Status download(std::span<std::byte> to, const void* from) = 0;
  // Within the device's memory.
  virtual absl::Status copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual absl::Status clear(void* address, std::size_t bytes) = 0;  // to zeros
  // Mark `number` stands behind all that was added so far; it is moved when it is set again.
  virtual absl::Status set_mark(std::size_t number) = 0;
  // Until all before the mark is done. DEADLINE_EXCEEDED: the device has been at it for longer than any work
  // takes; it hangs. REQUIRES: it was set.
  virtual absl::Status wait_for_mark(std::size_t number) = 0;
  // What is added from now on comes after that mark of `other`, a queue of the same device. REQUIRES: it was
  // set.
  virtual absl::Status follow(const Queue& other, std::size_t number) = 0;
  // Adds what `add` adds to this queue. With the same `kept`, null at first, that is the same each time, and
  // a queue that can keeps it: `add` is called the first time, which may take memory, and again the second
  // time, and later perhaps no more. It adds copies and clears, with memory of the host that is staging
  // memory and stays, and runs operators; it neither sets nor waits for marks, and has no other effect.
  virtual absl::Status repeat(std::unique_ptr<Recording>& /*kept*/, absl::FunctionRef<absl::Status()> add) {
    return add();
  }
  // Memory of the device that the operators of this queue share: a bf16 copy of the weights.
  virtual std::size_t half_weight_bytes() const { return 0; }

  // Marks that tell when the device passed them, [0, count): made once, for timer(). False: it has no clock.
  virtual absl::StatusOr<bool> make_time_marks(std::size_t /*count*/) { return false; }
  virtual absl::Status set_time_mark(std::size_t /*number*/) { return absl::OkStatus(); }
  // On the device's clock, between two that were set. Nothing where it has not passed both yet: never waits.
  virtual absl::StatusOr<std::optional<Duration>> time_between(std::size_t /*from*/, std::size_t /*to*/) {
    return std::nullopt;
  }
  // Of the steps whose work is added here.
  DeviceTimer& timer() { return timer_; }

 private:
  DeviceTimer timer_;
};

// Of a device's own memory, now: what other processes have of it is not free.
struct MemoryRoom {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

// Thread-safe; outlives its programs.
class Device {
 public:
  virtual ~Device() = default;
  // Nothing where it is the host's.
  virtual absl::StatusOr<std::optional<MemoryRoom>> room() { return std::nullopt; }
  // RESOURCE_EXHAUSTED where it has no more.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) = 0;
  // Memory of the host that a queue copies fastest. The same as allocate() where there is no queue.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate_staging(std::size_t bytes) = 0;
  // As long as the result lives, a queue copies from and to this memory of the host as fast as from staging
  // memory, and its copies do not hold up who adds them. Null where that makes no difference, or can't be
  // had. The memory outlives it.
  virtual std::shared_ptr<const void> pin(std::span<std::byte> /*memory*/) { return nullptr; }
  // Null where the device needs none: see above.
  virtual absl::StatusOr<std::unique_ptr<Queue>> open_queue() = 0;
  // What its lowerings take joined.
  virtual Joins joins() const { return {}; }
  // `queue`: of open_queue(); what is lowered is run on it, and it outlives that.
  virtual std::unique_ptr<Lowering> begin(const Schedule& schedule, Precision precision, Queue* queue) = 0;
  // Before every call that makes or runs operators, on the calling thread: a device's per-thread settings.
  virtual absl::Status enter() = 0;
};

}  // namespace paceline::tensor
