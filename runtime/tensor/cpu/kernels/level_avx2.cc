#include "runtime/tensor/cpu/kernels/body/table.h"
#include "runtime/tensor/cpu/kernels/levels.h"

namespace paceline::tensor::cpu {

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable = make_table(SimdLevel::kAvx2);
  return kTable;
}

}  // namespace paceline::tensor::cpu
