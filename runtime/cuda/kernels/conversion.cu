// Copies in another type. Memory-bound: bytes read and written once.

#include "runtime/cuda/kernels/conversion_params.h"
#include "runtime/cuda/kernels/portable.h"

namespace paceline::cuda {
namespace {

template <typename From, typename To, int kWidth>
PL_DEVICE void convert_at(const ConversionParams& p, std::size_t i) {
  float x[kWidth];
  load<kWidth>(static_cast<const From*>(p.x) + i, x);
  store<kWidth>(static_cast<To*>(p.y) + i, x);
}

template <typename From, typename To>
PL_DEVICE void convert(const ConversionParams& p) {
  constexpr std::size_t kWidth = kConversionWidth;
  const std::size_t whole = p.n / kWidth;
  for (std::size_t v = thread_of_grid(); v < whole; v += threads_of_grid())
    convert_at<From, To, kConversionWidth>(p, v * kWidth);
  const std::size_t left = whole * kWidth + thread_of_grid();
  if (left < p.n) convert_at<From, To, 1>(p, left);
}

}  // namespace

PL_KERNEL(kConversionThreads, narrow, ConversionParams, p) {
  convert<float, Bf16>(p);
}
PL_KERNEL(kConversionThreads, widen, ConversionParams, p) {
  convert<Bf16, float>(p);
}

}  // namespace paceline::cuda
