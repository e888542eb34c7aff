#pragma once

// Neighbours of a schedule become one operation, where a device has that: what one hands to the other is not
// written to memory and read again. Pure.
//
// Joined are operations of one pass that stand directly behind each other, of which the second reads the
// first's result, and nobody else reads what is then not made. The order stays, and all that is left in
// memory.

#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

// What a device has as one operation.
struct Joins {
  bool linear_gelu = false;     // kLinear, kGelu                       -> kLinearGelu
                                // kLinearBackwardData, kGeluBackward   -> kLinearGeluBackwardData
  bool embedding_add = false;   // kEmbedding, kAdd of a parameter      -> kEmbeddingAdd
  bool add_layer_norm = false;  // kAdd, kLayerNorm                     -> kAddLayerNorm
};

// Products and GELU, whose results are rounded otherwise when they are one. Before recompute_activations():
// so an operation is joined wherever it stands, and what is made again is the same bits.
Schedule join_products(Schedule schedule, const Joins& joins);

// Sums with what is before or behind them: the same bits as two operations. After recompute_activations(),
// which would keep a norm with its sum. The operands of a sum are there until its norm is made: in a
// transformer, that is not where the most is.
Schedule join_sums(Schedule schedule, const Joins& joins);

}  // namespace paceline::tensor
