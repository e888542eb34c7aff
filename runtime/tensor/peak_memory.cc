#include "runtime/tensor/peak_memory.h"

#include <algorithm>
#include <limits>
#include <numeric>

// Executable's plan with two simplifications: which operations work in place is a table, not asked of a
// device, and the arena is taken to have no gaps.

namespace paceline::tensor {

namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// Which output may lie where an input lies (the first one, but for kAddLayerNorm); -1: none.
int output_in_place(OperationKind kind) {
  switch (kind) {
    case OperationKind::kRelu:
    case OperationKind::kGelu:
    case OperationKind::kTanh:
    case OperationKind::kSigmoid:
    case OperationKind::kReluBackward:
    case OperationKind::kGeluBackward:
    case OperationKind::kTanhBackward:
    case OperationKind::kSigmoidBackward:
    case OperationKind::kAdd:
    case OperationKind::kMultiply:
    case OperationKind::kScale:
    case OperationKind::kReshape:
    case OperationKind::kLayerNormBackward:
    case OperationKind::kSoftmaxCrossEntropyBackward:
    case OperationKind::kSigmoidCrossEntropyBackward:
    case OperationKind::kAddLayerNorm:
      return 0;
    case OperationKind::kSoftmaxCrossEntropy:
      return 1;
    case OperationKind::kSigmoidCrossEntropy:
      return 2;
    default:
      return -1;
  }
}

}  // namespace

std::size_t tensor_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(element_count(tensor.dims)) *
         static_cast<std::size_t>(tensor.element_bytes);
}

std::size_t peak_bytes(const Schedule& schedule) {
  const std::size_t count = schedule.tensors.size();
  std::vector<std::size_t> first(count, kNever), last(count, 0), group(count);
  std::iota(group.begin(), group.end(), 0);
  for (std::size_t o = 0; o < schedule.operations.size(); ++o) {
    const auto touch = [&](TensorId id) {
      first[index(id)] = std::min(first[index(id)], o);
      last[index(id)] = o;
    };
    for (const TensorId id : schedule.operations[o].inputs) touch(id);
    for (const TensorId id : schedule.operations[o].outputs) touch(id);
  }
  const auto of_arena = [&](std::size_t tensor) { return schedule.tensors[tensor].place == Place::kArena; };
  for (std::size_t o = 0; o < schedule.operations.size(); ++o) {
    const Operation& operation = schedule.operations[o];
    const int shared = output_in_place(operation.kind);
    if (shared < 0 || static_cast<std::size_t>(shared) >= operation.outputs.size()) continue;
    const std::size_t input = operation.kind == OperationKind::kAddLayerNorm ? 1 : 0;
    const std::size_t in = group[index(operation.inputs[input])];
    const std::size_t out = index(operation.outputs[static_cast<std::size_t>(shared)]);
    const bool fits = tensor_bytes(schedule.tensors[out]) <= tensor_bytes(schedule.tensors[in]);
    const bool free = operation.kind == OperationKind::kReshape || last[in] == o;
    if (!of_arena(in) || !of_arena(out) || !fits || !free) continue;
    group[out] = in;
    last[in] = std::max(last[in], last[out]);
  }
  std::vector<std::size_t> begins(schedule.operations.size()), ends(schedule.operations.size());
  for (std::size_t t = 0; t < count; ++t) {
    if (!of_arena(t) || group[t] != t || first[t] == kNever) continue;
    begins[first[t]] += tensor_bytes(schedule.tensors[t]);
    ends[last[t]] += tensor_bytes(schedule.tensors[t]);
  }
  std::size_t live = 0, peak = 0;
  for (std::size_t o = 0; o < begins.size(); ++o) {
    live += begins[o];
    peak = std::max(peak, live);
    live -= ends[o];
  }
  return peak;
}

}  // namespace paceline::tensor
