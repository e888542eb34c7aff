#include "runtime/cuda/small_losses.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

std::uint32_t SmallLosses::parts(std::size_t n) {
  return parts_of(n);
}

absl::StatusOr<SmallLosses> SmallLosses::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), small_losses_image()));
  PL_LOAD_PAIR(const auto sigmoid, module, SigmoidLossParams, sigmoid_cross_entropy);
  PL_LOAD_PAIR(const auto squares, module, SquaredDifferencesParams, squared_differences);
  PL_LOAD_PAIR(const auto difference, module, ScaledDifferenceParams, scaled_difference);
  PL_ASSIGN_OR_RETURN(const auto sum, module.kernel<SquaredSumParams>("sum_squared_differences"));
  return SmallLosses(std::move(module), {sigmoid, squares, difference, sum});
}

absl::Status SmallLosses::sigmoid_cross_entropy(Stream& stream, DType type,
                                                const SigmoidLossParams& params) const {
  return kernels_.sigmoid.launch(stream, type, {.threads = kSmallLossThreads}, params);
}

absl::Status SmallLosses::squared_error(Stream& stream, DType type, const void* x, const void* y,
                                        std::size_t n, double per_sample, double* partials,
                                        double* result) const {
  PL_RETURN_IF_ERROR(kernels_.squares.launch(stream, type,
                                             {.columns = parts(n), .threads = kSmallLossThreads},
                                             {.x = x, .y = y, .partials = partials, .n = n}));
  return kernels_.sum.launch(
      stream, {.threads = kSmallLossThreads},
      {.partials = partials, .result = result, .per_sample = per_sample, .parts = parts(n)});
}

absl::Status SmallLosses::scaled_difference(Stream& stream, DType type,
                                            const ScaledDifferenceParams& params) const {
  if (params.n == 0) return absl::OkStatus();
  return kernels_.difference.launch(
      stream, type, strided_shape(params.n, kSmallLossThreads, stream.context().device().multiprocessors),
      params);
}

}  // namespace paceline::cuda
