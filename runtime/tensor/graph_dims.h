#pragma once

// Checks of shapes that the graph's builder shares. Pure.

#include "runtime/tensor/graph.h"

namespace paceline::tensor {

// Positive, not empty, and far from overflow.
bool sane(const Dims& dims);

}  // namespace paceline::tensor
