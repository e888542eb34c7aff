#include "runtime/tensor/cpu/pool.h"

#include <algorithm>

#include "runtime/tensor/cpu/kernels/kernels.h"
#include "runtime/tensor/cpu/pool_loops.h"

namespace paceline::tensor::cpu {

namespace {

const PoolLoops& loops() {
#if defined(__x86_64__)
  if (kernels().level == SimdLevel::kAvx512) return avx512_pool_loops();
  if (kernels().level == SimdLevel::kAvx2) return avx2_pool_loops();
#endif
  return portable_pool_loops();
}

void backward_scatter(const PoolShape& s, const float* g, const std::uint8_t* places, const float* y,
                      float* dx) {
  std::fill(dx, dx + s.outer * s.height * s.width * s.inner, 0.0F);
  std::size_t from = 0;
  for (std::size_t o = 0; o < s.outer; ++o) {
    float* plane = dx + o * s.height * s.width * s.inner;
    for (std::size_t i = 0; i < s.out_height; ++i) {
      for (std::size_t j = 0; j < s.out_width; ++j) {
        for (std::size_t c = 0; c < s.inner; ++c, ++from) {
          if (y != nullptr && !(y[from] > 0)) continue;
          const std::size_t row = i * s.stride + places[from] / s.window;
          const std::size_t column = j * s.stride + places[from] % s.window;
          plane[(row * s.width + column) * s.inner + c] += g[from];
        }
      }
    }
  }
}

}  // namespace

void max_pool(const PoolShape& shape, const float* x, float* y, std::uint8_t* places) {
  loops().pool(shape, x, y, places);
}

void max_pool_backward(const PoolShape& shape, const float* g, const std::uint8_t* places, const float* y,
                       float* dx) {
  const bool tiles = shape.stride == shape.window && shape.out_height * shape.stride == shape.height &&
                     shape.out_width * shape.stride == shape.width;
  if (!tiles) return backward_scatter(shape, g, places, y, dx);
  loops().tiles(shape, g, places, y, dx);
}

}  // namespace paceline::tensor::cpu
