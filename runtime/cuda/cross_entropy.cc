#include "runtime/cuda/cross_entropy.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

LaunchShape cross_entropy_shape(DType type, std::size_t rows, std::size_t stride) {
  constexpr std::size_t kWarpThreads = 32;
  const std::size_t elements = wide_elements(type) * kWarpThreads;
  const std::size_t warps = (stride + elements - 1) / elements;
  return {.columns = static_cast<std::uint32_t>(rows),
          .threads = static_cast<std::uint32_t>(
              std::clamp<std::size_t>(warps * kWarpThreads, kWarpThreads, kCrossEntropyThreads))};
}

absl::StatusOr<CrossEntropy> CrossEntropy::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), cross_entropy_image()));
  PL_LOAD_PAIR(const auto forward, module, CrossEntropyParams, cross_entropy);
  PL_LOAD_PAIR(const auto gradient, module, CrossEntropyParams, cross_entropy_gradient);
  PL_ASSIGN_OR_RETURN(const auto sum, module.kernel<LossSumParams>("sum_losses"));
  return CrossEntropy(std::move(module), {forward, gradient, sum});
}

absl::Status CrossEntropy::forward(Stream& stream, DType type, const CrossEntropyParams& params) const {
  if (params.rows == 0) return absl::OkStatus();
  return kernels_.forward.launch(stream, type, cross_entropy_shape(type, params.rows, params.stride), params);
}

absl::Status CrossEntropy::gradient(Stream& stream, DType type, const CrossEntropyParams& params) const {
  if (params.rows == 0) return absl::OkStatus();
  return kernels_.gradient.launch(stream, type, cross_entropy_shape(type, params.rows, params.stride),
                                  params);
}

absl::Status CrossEntropy::sum(Stream& stream, const LossSumParams& params) const {
  return kernels_.sum.launch(stream, {.threads = kLossSumThreads}, params);
}

}  // namespace paceline::cuda
