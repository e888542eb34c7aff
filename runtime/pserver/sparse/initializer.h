#pragma once

// A row's first weights. Pure. Element k of row `id` is made from output k of SplitMix64 with a key of the
// table's seed and the id. kNormal is Box and Muller's method with the machine's logarithm and sines, so that
// machines with another mathematical library may differ in the last bit.

#include <span>

#include "runtime/pserver/sparse/table_spec.h"

namespace paceline::pserver::sparse {

void initialize_row(const Initializer& initializer, std::uint64_t seed, RowId id, std::span<float> weights);

}  // namespace paceline::pserver::sparse
