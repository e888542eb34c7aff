#pragma once

// Softmax and cross-entropy on the GPU, over logits of fp32 or bf16, in fp32
// (kernels/cross_entropy_params.h): a loss for each row, the gradient in place of the logits, and the sums
// that a step reports.
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. The same
// bits from run to run, on whatever GPU. Thread-safe but for the stream.

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/kernel_pair.h"
#include "runtime/cuda/kernels/cross_entropy_params.h"

namespace paceline::cuda {

// A block for each row, of as many warps as its accesses give work to.
LaunchShape cross_entropy_shape(DType type, std::size_t rows, std::size_t stride);

class CrossEntropy {
 public:
  static absl::StatusOr<CrossEntropy> load(std::shared_ptr<const Context> context);

  // losses and hits of each row; logits, read once, stay. REQUIRES: 0 < classes <= stride.
  absl::Status forward(Stream& stream, DType type, const CrossEntropyParams& params) const;
  // The same, and logits, read once from memory and written once, become scale * (probability - (class ==
  // label)), and 0 beyond the classes.
  absl::Status gradient(Stream& stream, DType type, const CrossEntropyParams& params) const;
  // Added up in double, in a fixed order.
  absl::Status sum(Stream& stream, const LossSumParams& params) const;

 private:
  struct Kernels {
    KernelPair<CrossEntropyParams> forward, gradient;
    Kernel<LossSumParams> sum;
  };
  CrossEntropy(Module module, const Kernels& kernels) : module_(std::move(module)), kernels_(kernels) {}

  Module module_;
  Kernels kernels_;
};

}  // namespace paceline::cuda
