#include "runtime/tensor/cpu/kernels/kernels.h"

#include "runtime/tensor/cpu/kernels/levels.h"

namespace paceline::tensor::cpu {
namespace {

bool processor_has(SimdLevel level) {
#ifdef PACELINE_X86_KERNELS
  if (level == SimdLevel::kAvx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (level == SimdLevel::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  }
#endif
  return level == SimdLevel::kPortable;
}

const Kernels& best() {
  if (const Kernels* wide = kernels_for(SimdLevel::kAvx512)) return *wide;
  if (const Kernels* half = kernels_for(SimdLevel::kAvx2)) return *half;
  return portable_kernels();
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = best();
  return chosen;
}

const Kernels* kernels_for(SimdLevel level) {
  if (!processor_has(level)) return nullptr;
#ifdef PACELINE_X86_KERNELS
  if (level == SimdLevel::kAvx2) return &avx2_kernels();
  if (level == SimdLevel::kAvx512) return &avx512_kernels();
#endif
  return &portable_kernels();
}

std::size_t attention_scratch(const AttentionShape& shape) {
  const auto padded = [](std::size_t n) { return (n + 15) / 16 * 16; };
  const std::size_t time = padded(shape.time), size = padded(shape.head_size);
  return 2 * time * time + 7 * time * size;
}

}  // namespace paceline::tensor::cpu
