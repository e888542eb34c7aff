#pragma once

// Windows over images on the GPU, in fp32 or bf16 (kernels/windows_params.h): max pooling, and what makes a
// convolution a product of matrices (im2col; Chellapilla et al. 2006):
//   y[position][filter] = columns[position][patch] weight[filter][patch], and y's transposition per image;
//   dweight = g^T columns;  dcolumns = g weight, gathered to dx.
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. Gathered
// without atomics: the same bits from run to run, on whatever GPU. Thread-safe but for the stream.

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/kernel_pair.h"
#include "runtime/cuda/kernels/windows_params.h"

namespace paceline::cuda {

class Windows {
 public:
  static absl::StatusOr<Windows> load(std::shared_ptr<const Context> context);

  absl::Status columns(Stream& stream, DType type, const ColumnsParams& params) const;
  absl::Status images(Stream& stream, DType type, const ImagesParams& params) const;
  absl::Status max_pool(Stream& stream, DType type, const MaxPoolParams& params) const;
  absl::Status max_pool_backward(Stream& stream, DType type, const MaxPoolBackwardParams& params) const;
  // REQUIRES: at most 65,535 matrices.
  absl::Status transpose(Stream& stream, DType type, const TransposeParams& params,
                         std::uint32_t matrices) const;

 private:
  struct Kernels {
    KernelPair<ColumnsParams> columns;
    KernelPair<ImagesParams> images;
    KernelPair<MaxPoolParams> max_pool;
    KernelPair<MaxPoolBackwardParams> max_pool_backward;
    KernelPair<TransposeParams> transpose;
  };
  Windows(Module module, const Kernels& kernels) : module_(std::move(module)), kernels_(kernels) {}

  Module module_;
  Kernels kernels_;
};

}  // namespace paceline::cuda
