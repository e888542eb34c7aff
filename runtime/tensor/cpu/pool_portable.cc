#include "runtime/tensor/cpu/pool_loops.h"

namespace paceline::tensor::cpu {

const PoolLoops& portable_pool_loops() {
  static constexpr PoolLoops kLoops{pool_any, tiles_any};
  return kLoops;
}

}  // namespace paceline::tensor::cpu
