#pragma once

// Checks of shapes that the graph's builder shares. Pure.

#include <string>

#include "runtime/tensor/graph.h"

namespace paceline::tensor {

// What is wrong with the shape of one array: it is empty, not positive, or too large. Empty text: nothing.
std::string fault_of(const Dims& dims);

}  // namespace paceline::tensor
