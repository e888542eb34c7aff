#pragma once

// Operators of the GPU: a body that adds kernels to a program's stream, with the operands in the types that
// it asks for.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "base/dtype.h"
#include "runtime/cuda/conversion.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/gpu/gpu_queue.h"

namespace paceline::tensor::gpu {

using Addresses = Operator::Addresses;

// What one operation is on the GPU.
struct Lowered {
  using Body = std::function<absl::Status(const Addresses&, const RunContext&, cuda::Stream&)>;
  Operator::Needs needs;       // scratch and sharing of the body alone
  Body body;                   // sees of the context only what repeats() looks at
  std::vector<DType> inputs;   // that the body takes; shorter: the others as they are
  std::vector<DType> outputs;  // that it makes; likewise
  Body prepare = nullptr;      // Operator::prepare(); null: nothing
};

template <typename T>
const T* in(const Addresses& addresses, std::size_t number) {
  return static_cast<const T*>(addresses.inputs[number]);
}
template <typename T>
T* out(const Addresses& addresses, std::size_t number) {
  return static_cast<T*>(addresses.outputs[number]);
}

class GpuOperator final : public Operator {
 public:
  GpuOperator(Lowered lowered, GpuQueue& queue, const cuda::Conversion& conversion);

  // The body gets operand `number` converted, from `from` to `to`. Before needs().
  void convert_input(std::size_t number, DType from, DType to, std::size_t elements);
  void convert_output(std::size_t number, DType from, DType to, std::size_t elements);
  // The body gets the bf16 copy of the weight at `offset`, which the queue keeps.
  void half_weight(std::size_t number, std::size_t offset);

  Needs needs() const override { return lowered_.needs; }
  void bind(const Addresses& addresses) override;
  absl::Status prepare(const RunContext& context) override;
  absl::Status run(const RunContext& context) override;

 private:
  struct Conversion {
    std::size_t number;
    DType from, to;
    std::size_t elements;
    std::size_t scratch_offset;
  };
  struct HalfWeight {
    std::size_t number;
    std::size_t offset;
  };
  std::size_t take_scratch(std::size_t bytes);
  void* scratch(std::size_t offset) const { return static_cast<std::byte*>(addresses_.scratch) + offset; }

  Lowered lowered_;
  GpuQueue& queue_;
  const cuda::Conversion& conversion_;
  std::vector<Conversion> inputs_, outputs_;
  std::vector<HalfWeight> half_weights_;
  Addresses addresses_;  // of the operation
  Addresses inner_;      // of the body
};

}  // namespace paceline::tensor::gpu
