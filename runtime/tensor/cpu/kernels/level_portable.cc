#include "runtime/tensor/cpu/kernels/body/table.h"
#include "runtime/tensor/cpu/kernels/levels.h"

namespace paceline::tensor::cpu {

const Kernels& portable_kernels() {
  static constexpr Kernels kTable = make_table(SimdLevel::kPortable);
  return kTable;
}

}  // namespace paceline::tensor::cpu
