#pragma once

// The table of each level, for kernels.cc alone. Calling into a table that the processor lacks is an illegal
// instruction.

#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::tensor::cpu {

const Kernels& portable_kernels();
const Kernels& avx2_kernels();    // x86 builds only
const Kernels& avx512_kernels();  // x86 builds only

}  // namespace paceline::tensor::cpu
