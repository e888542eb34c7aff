#pragma once

// What a schedule would take of memory, before a device has lowered it: for choosing between schedules. Pure.

#include <cstddef>
#include <vector>

#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

// Of all tensors by their number of elements; a device may need less (bf16) or more (padding, scratch).
std::size_t tensor_bytes(const Tensor& tensor);

// The most bytes of the arena that tensors have at any one operation, where results lie in place of operands
// wherever devices may do so (Operator::Sharing).
std::size_t peak_bytes(const Schedule& schedule);

}  // namespace paceline::tensor
