#include "runtime/tensor/cpu/kernels/body/table.h"
#include "runtime/tensor/cpu/kernels/levels.h"

namespace paceline::tensor::cpu {

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable = make_table(SimdLevel::kAvx512);
  return kTable;
}

}  // namespace paceline::tensor::cpu
