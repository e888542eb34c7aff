#pragma once

// Checks of shapes that the graph's builder shares. Pure.

#include <string>

#include "runtime/tensor/graph.h"

namespace paceline::tensor {

// The fault of one array's shape: it is empty, not positive, or too large. Empty text: the shape is right.
std::string fault_of(const Dims& dims);

}  // namespace paceline::tensor
