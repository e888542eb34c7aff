#pragma once

// Which parts of a gradient are told together. Pure.

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

// `ready` (of a schedule) in groups of at least `least_elements`, but for the last: all of a group are told
// after the operation that makes the last of them. Neighbours are joined; of each group the last elements
// come first.
std::vector<ReadyRange> gather_ranges(std::span<const ReadyRange> ready, std::size_t least_elements);

}  // namespace paceline::tensor
