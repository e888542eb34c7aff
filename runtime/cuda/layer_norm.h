#pragma once

// Layer norm on the GPU, with the residual sum before it, in fp32 or bf16: activations of that type, all else
// fp32 (kernels/layer_norm_params.h). A bf16 sum is rounded before it is normalised, so that the backward
// pass sees the same rows.
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. The same
// bits from run to run, on whatever GPU. At least one column; no rows: nothing is done (and gradients that
// are not accumulated become zeros). Thread-safe but for the stream and the scratch memory.

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/columns.h"
#include "runtime/cuda/kernel_pair.h"
#include "runtime/cuda/kernels/layer_norm_params.h"

namespace paceline::cuda {

LaunchShape norm_shape(DType type, std::size_t rows, std::uint32_t columns, int multiprocessors);
// As many blocks as there are partial sums: of the rows alone.
LaunchShape norm_backward_shape(DType type, std::size_t rows, std::size_t columns);

class LayerNorm {
 public:
  // `columns` outlives it.
  static absl::StatusOr<LayerNorm> load(std::shared_ptr<const Context> context, const Columns& columns);

  absl::Status forward(Stream& stream, DType type, const LayerNormParams& params) const;

  struct Gradients {
    float* gain = nullptr;  // [columns]
    float* bias = nullptr;
    bool accumulate = false;
  };
  // params.partials is scratch memory of scratch_elements().
  absl::Status backward(Stream& stream, DType type, const LayerNormBackwardParams& params,
                        const Gradients& gradients) const;
  static std::size_t scratch_elements(std::size_t rows, std::size_t columns);

 private:
  struct Kernels {
    KernelPair<LayerNormParams> forward, forward_any, forward_wide;
    KernelPair<LayerNormBackwardParams> backward, backward_any, backward_wide;
  };
  const KernelPair<LayerNormParams>& forward_for(DType type, std::size_t columns) const;
  const KernelPair<LayerNormBackwardParams>& backward_for(DType type, std::size_t columns) const;
  LayerNorm(Module module, const Kernels& kernels, const Columns& columns)
      : module_(std::move(module)), kernels_(kernels), columns_(&columns) {}

  Module module_;
  Kernels kernels_;
  const Columns* columns_;
};

}  // namespace paceline::cuda
