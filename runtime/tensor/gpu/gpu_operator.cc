#include "runtime/tensor/gpu/gpu_operator.h"

#include <utility>

#include "base/status.h"
#include "runtime/tensor/memory_plan.h"

namespace paceline::tensor::gpu {

GpuOperator::GpuOperator(Lowered lowered, GpuQueue& queue, const cuda::Conversion& conversion)
    : lowered_(std::move(lowered)), queue_(queue), conversion_(conversion) {}

std::size_t GpuOperator::take_scratch(std::size_t bytes) {
  std::size_t& all = lowered_.needs.scratch_bytes;
  const std::size_t offset = (all + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  all = offset + bytes;
  return offset;
}

// A converted operand lies elsewhere: nothing is done in place.
void GpuOperator::convert_input(std::size_t number, DType from, DType to, std::size_t elements) {
  inputs_.push_back({number, from, to, elements, take_scratch(elements * dtype_bytes(to))});
  lowered_.needs.sharing = Sharing::kNever;
}

void GpuOperator::convert_output(std::size_t number, DType from, DType to, std::size_t elements) {
  outputs_.push_back({number, from, to, elements, take_scratch(elements * dtype_bytes(from))});
  lowered_.needs.sharing = Sharing::kNever;
}

void GpuOperator::half_weight(std::size_t number, std::size_t offset) {
  half_weights_.push_back({number, offset});
}

void GpuOperator::bind(const Addresses& addresses) {
  addresses_ = inner_ = addresses;
  for (const Conversion& c : inputs_) inner_.inputs[c.number] = scratch(c.scratch_offset);
  for (const Conversion& c : outputs_) inner_.outputs[c.number] = scratch(c.scratch_offset);
  for (const HalfWeight& w : half_weights_) inner_.inputs[w.number] = queue_.half_weights().address(w.offset);
}

absl::Status GpuOperator::prepare(const RunContext& context) {
  cuda::Stream& stream = queue_.stream();
  for (const HalfWeight& w : half_weights_) {
    PL_RETURN_IF_ERROR(queue_.half_weights().refresh(stream, conversion_, w.offset,
                                                     static_cast<const float*>(addresses_.inputs[w.number]),
                                                     context.weights_version));
  }
  return lowered_.prepare == nullptr ? absl::OkStatus() : lowered_.prepare(inner_, context, stream);
}

absl::Status GpuOperator::run(const RunContext& context) {
  cuda::Stream& stream = queue_.stream();
  for (const Conversion& c : inputs_) {
    PL_RETURN_IF_ERROR(conversion_.convert(stream, c.from, addresses_.inputs[c.number], c.to,
                                           inner_.inputs[c.number], c.elements));
  }
  RunContext repeated;
  repeated.scale = context.scale;
  repeated.accumulate = context.accumulate;
  repeated.whole_pass = context.whole_pass;
  PL_RETURN_IF_ERROR(lowered_.body(inner_, repeated, stream));
  for (const Conversion& c : outputs_) {
    PL_RETURN_IF_ERROR(conversion_.convert(stream, c.from, inner_.outputs[c.number], c.to,
                                           addresses_.outputs[c.number], c.elements));
  }
  return absl::OkStatus();
}

}  // namespace paceline::tensor::gpu
