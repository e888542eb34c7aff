#pragma once

// A compiled model: a static graph with planned memory, for one device and one largest batch. The trainer
// sees nothing else of a model.
//
// Weights and gradients are one flat fp32 vector each, owned by the caller and laid out by `parameters()`:
// of the host (gradients in registered memory), where a program on a GPU keeps copies of both and moves what
// changed; or of the GPU itself. Nothing is allocated after the first pass that follows a bind, but what a
// GPU's driver keeps of the second one (device.h, Queue::repeat). One thread at a time; the device may use
// threads of its own. The loss of a sample is the mean over its label positions; `forward` returns sums over
// samples, so that members may hold different numbers of them.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"

namespace paceline::tensor {

struct Parameter {
  std::string name;  // "conv1.weight"
  std::vector<std::int64_t> dims;
  std::size_t offset = 0;  // first element in the flat vector
  std::size_t count = 0;
  bool decay = true;  // weight decay applies (matrices, not biases and norms)
};

// Parameters in the order of the forward pass, without holes but for alignment padding (zeros, never
// trained).
struct ParameterLayout {
  std::vector<Parameter> parameters;
  std::size_t elements = 0;          // of the flat vector, padding included
  std::size_t trained_elements = 0;  // without padding
};

// The input memory of a program: fill it, then call forward() or pass(). It stays as it was filled, and is
// the caller's again when they return: on a GPU it was read by then, though the backward pass may still go
// on.
struct BatchMemory {
  std::span<float> inputs;  // rows * elements per sample; empty for token models
  std::span<std::int32_t> tokens;
  std::span<std::int32_t> labels;  // rows * labels per sample
  std::span<float> offsets = {};   // rows, where the graph has an offset()
  // What a program leaves here; empty where its graph has none of it. A gradient is that of `scale` times the
  // last forward's loss, written over whatever was there, also where parameters' gradients accumulate.
  std::span<const float> input_gradients = {};   // of a trained_input(), as inputs
  std::span<const float> offset_gradients = {};  // rows
  // Of each row, after a forward: the logit of sigmoid_cross_entropy(), or what scores() was given.
  std::span<const float> scores = {};
};

struct ForwardResult {
  double loss_sum = 0;       // over the samples
  std::int64_t correct = 0;  // label positions whose highest score is the label
  std::int64_t label_count = 0;
};

// Weights and gradients that stay in the memory of a device with a queue (device.h).
struct DeviceVectors {
  float* weights = nullptr;
  float* gradients = nullptr;              // null for programs that only evaluate
  const std::uint64_t* version = nullptr;  // of the weights, from 1: another one when they changed
};

// What a program has taken of the memory of a device that has its own; zeros where it is the host's.
struct MemoryUse {
  std::size_t activations = 0;   // the arena: of the largest number of samples so far
  std::size_t half_weights = 0;  // the bf16 copy of the weights
  std::size_t batch = 0;
  std::size_t cache = 0;    // of keys and values, also where other programs have it, too
  std::size_t vectors = 0;  // copies of the host's weights and gradients
  std::size_t free = 0;     // that nobody has
  std::size_t total = 0;
};

// Hears of every operation that a program runs, for measurements.
class OperationObserver {
 public:
  virtual ~OperationObserver() = default;
  virtual void begin() = 0;
  // `operation` is what ran ("linear backward data"), `name` the layer ("fc1"). Both live as long as the
  // program.
  virtual void end(std::string_view operation, std::string_view name) = 0;
};

class Program {
 public:
  virtual ~Program() = default;
  virtual const ParameterLayout& parameters() const = 0;
  virtual std::int64_t max_rows() const = 0;

  // Both vectors have parameters().elements elements and outlive the program or the next bind. `gradients`
  // may be empty for a program that only evaluates.
  virtual void bind(std::span<float> weights, std::span<float> gradients) = 0;
  // In place of bind(): both vectors are of the device's memory, and are read and written in the order of the
  // queue that the program was compiled for, by programs of it and by nobody else unseen. backward() and
  // pass() then return once their work is added, and `on_ready` hears of elements whose work is added.
  // UNIMPLEMENTED where the device's memory is the host's.
  virtual absl::Status bind_on_device(const DeviceVectors& /*vectors*/) {
    return absl::UnimplementedError("this program's vectors are the host's");
  }
  // Gives back what copies of vectors bound by bind() have of the device's memory, once it is done with them.
  // They are to be bound again before the next forward. The device's errors.
  virtual absl::Status unbind() { return absl::OkStatus(); }
  // Fills the weights with the model's initial values, from `seed` alone.
  virtual void initialize(std::uint64_t seed, std::span<float> weights) const = 0;
  // Tells the program that the bound weights changed (bf16 copies and packed forms are made anew at the next
  // forward).
  virtual void weights_changed() = 0;

  virtual BatchMemory batch() = 0;
  // Samples [0, rows) of the batch memory. REQUIRES: 0 < rows <= max_rows(). The device's errors (device.h),
  // as of all that follows; RESOURCE_EXHAUSTED: see reserve().
  virtual absl::StatusOr<ForwardResult> forward(std::int64_t rows) = 0;
  // Gradients of `scale` * loss_sum of the last forward, added to (`accumulate`) what the backward before it
  // left, or written over the bound gradients. `on_ready(begin, end)` is called as soon as those elements are
  // final, from the last layers to the first; the ranges are disjoint and cover [0, parameters().elements).
  // It may be null; a GPU is given the pass as a whole then, and tells of some megabytes at a time otherwise.
  // REQUIRES: one forward before each backward.
  using OnReady = std::function<void(std::size_t begin, std::size_t end)>;
  virtual absl::Status backward(float scale, bool accumulate, const OnReady& on_ready) = 0;
  // Both, of samples that are there: the same results, and on a GPU no pause between them. `on_result` hears
  // of the forward pass while the backward pass goes on; its error is returned, when that is done.
  using OnResult = std::function<absl::Status(const ForwardResult& result)>;
  virtual absl::Status pass(std::int64_t rows, float scale, bool accumulate, const OnResult& on_result,
                            const OnReady& on_ready) {
    PL_ASSIGN_OR_RETURN(const ForwardResult result, forward(rows));
    PL_RETURN_IF_ERROR(on_result(result));
    return backward(scale, accumulate, on_ready);
  }

  // Operators are made for exact row counts, at the first forward of each; the last eight counts are kept.
  // This makes them ahead. Not between a forward and its backward. RESOURCE_EXHAUSTED where memory is short:
  // nothing was taken, and the message says what is needed and what is free, and how many samples would fit.
  virtual absl::Status reserve(std::int64_t rows) {
    return rows > 0 && rows <= max_rows() ? absl::OkStatus()
                                          : absl::InvalidArgumentError("rows are not in [1, max_rows()]");
  }
  virtual absl::StatusOr<MemoryUse> memory() const { return MemoryUse(); }
  // Null: nobody. The observer outlives the program or the next call.
  virtual void observe(OperationObserver* observer) { static_cast<void>(observer); }
};

}  // namespace paceline::tensor
