#pragma once

// The weights that a model begins with.

#include <cstdint>
#include <span>

#include "runtime/tensor/graph.h"
#include "runtime/tensor/program.h"

namespace paceline::tensor {

// Fills `weights` (layout.elements, its padding too) from `seed` and the parameters' names alone: the same
// bits with any number of threads. At most `threads` work, this one included, and fewer where there is little
// to do: a value takes about 15 ns.
void fill_initial_weights(const GraphBuilder& graph, const ParameterLayout& layout, std::uint64_t seed,
                          int threads, std::span<float> weights);

// Zeros between the parameters.
void clear_padding(const ParameterLayout& layout, std::span<float> vector);

}  // namespace paceline::tensor
