#pragma once

// Sigmoid cross-entropy and the squared error on the GPU, over values of fp32 or bf16
// (kernels/small_losses_params.h).
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. The same
// bits from run to run, on whatever GPU. Thread-safe but for the stream.

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/kernel_pair.h"
#include "runtime/cuda/kernels/small_losses_params.h"

namespace paceline::cuda {

class SmallLosses {
 public:
  static absl::StatusOr<SmallLosses> load(std::shared_ptr<const Context> context);

  absl::Status sigmoid_cross_entropy(Stream& stream, DType type, const SigmoidLossParams& params) const;

  // Partial sums of n squared differences: at most 1024.
  static std::uint32_t parts(std::size_t n);
  // result: the sum of (x - y)^2 divided by per_sample, 0, 0. `partials` holds parts(n).
  absl::Status squared_error(Stream& stream, DType type, const void* x, const void* y, std::size_t n,
                             double per_sample, double* partials, double* result) const;
  // dx = factor (x - y)
  absl::Status scaled_difference(Stream& stream, DType type, const ScaledDifferenceParams& params) const;

 private:
  struct Kernels {
    KernelPair<SigmoidLossParams> sigmoid;
    KernelPair<SquaredDifferencesParams> squares;
    KernelPair<ScaledDifferenceParams> difference;
    Kernel<SquaredSumParams> sum;
  };
  SmallLosses(Module module, const Kernels& kernels) : module_(std::move(module)), kernels_(kernels) {}

  Module module_;
  Kernels kernels_;
};

}  // namespace paceline::cuda
