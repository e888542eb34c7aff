#pragma once

// Memory for time: most of what the backward pass reads of the forward pass is not kept but made again (Chen
// et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). Pure.
//
// The forward pass is cut into segments. What later segments read is kept, as is the last segment, whose
// results the backward pass wants at once. What else the backward pass reads is made a second time, in fresh
// tensors, just before the first backward operation that reads it, by the same operations on the same
// operands: gradients are the same bits.

#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

// `schedule` with such operations between those of its backward part. The forward part is what it was, and
// the loss, which ends it, is never repeated; nor is any operation repeated twice. Cut where that makes the
// arena smallest, but for what saves little (recompute.cc). What would not become smaller, and what has no
// backward part, comes back as it is. REQUIRES: it is make_schedule()'s, or
// join_products()'s of that.
Schedule recompute_activations(Schedule schedule);

}  // namespace paceline::tensor
