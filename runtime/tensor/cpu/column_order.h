#pragma once

// A matrix whose columns stand in another order. A fully connected layer behind a convolution reads samples
// as they lie (channels in blocks): it is the weight's columns that are moved, a few hundred kilobytes a
// step, and not the activations.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/tensor/cpu/dnnl_primitive.h"

namespace paceline::tensor::cpu {

// order[k]: the row-major number of the element that lies at place k of a sample. Null: they are the same.
using ColumnOrder = std::shared_ptr<const std::vector<std::uint32_t>>;

// Of a {rows, channels, height, width} layout. REQUIRES: no padding, samples one after the other.
ColumnOrder column_order(const Layout& layout);

// to[r][k] = from[r][order[k]]
void gather_columns(const float* from, const std::vector<std::uint32_t>& order, std::size_t rows, float* to);
// to[r][order[k]] (+)= from[r][k]
void scatter_columns(const float* from, const std::vector<std::uint32_t>& order, std::size_t rows, bool adds,
                     float* to);

}  // namespace paceline::tensor::cpu
