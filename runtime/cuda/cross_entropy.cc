#include "runtime/cuda/cross_entropy.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

LaunchShape cross_entropy_shape(DType type, std::size_t rows, std::size_t stride) {
  constexpr std::size_t kWarpThreads = 32;
  const std::size_t accesses = whole_vectors(type, stride) ? stride / wide_elements(type) : stride;
  const std::size_t warps = (accesses + kWarpThreads - 1) / kWarpThreads;
  return {.columns = static_cast<std::uint32_t>(rows),
          .threads = static_cast<std::uint32_t>(
              std::clamp<std::size_t>(warps * kWarpThreads, kWarpThreads, kCrossEntropyThreads))};
}

absl::StatusOr<CrossEntropy> CrossEntropy::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), cross_entropy_image()));
  PL_LOAD_PAIR(const auto forward, module, CrossEntropyParams, cross_entropy);
  PL_LOAD_PAIR(const auto forward_any, module, CrossEntropyParams, cross_entropy_any);
  PL_LOAD_PAIR(const auto gradient, module, CrossEntropyParams, cross_entropy_gradient);
  PL_LOAD_PAIR(const auto gradient_any, module, CrossEntropyParams, cross_entropy_gradient_any);
  PL_ASSIGN_OR_RETURN(const auto sum, module.kernel<LossSumParams>("sum_losses"));
  return CrossEntropy(std::move(module), {forward, forward_any, gradient, gradient_any, sum});
}

absl::Status CrossEntropy::forward(Stream& stream, DType type, const CrossEntropyParams& params) const {
  if (params.rows == 0) return absl::OkStatus();
  return (whole_vectors(type, params.stride) ? kernels_.forward : kernels_.forward_any)
      .launch(stream, type, cross_entropy_shape(type, params.rows, params.stride), params);
}

absl::Status CrossEntropy::gradient(Stream& stream, DType type, const CrossEntropyParams& params) const {
  if (params.rows == 0) return absl::OkStatus();
  return (whole_vectors(type, params.stride) ? kernels_.gradient : kernels_.gradient_any)
      .launch(stream, type, cross_entropy_shape(type, params.rows, params.stride), params);
}

absl::Status CrossEntropy::sum(Stream& stream, const LossSumParams& params) const {
  return kernels_.sum.launch(stream, {.threads = kLossSumThreads}, params);
}

}  // namespace paceline::cuda
