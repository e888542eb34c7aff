#pragma once

// Copies on the GPU from one type to another: fp32 rounded to bf16 (to nearest, ties to even; NaN stays NaN),
// and bf16 as fp32.
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once.
// Thread-safe but for the stream.

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/dtype.h"
#include "runtime/cuda/kernels/conversion_params.h"
#include "runtime/cuda/module.h"

namespace paceline::cuda {

class Conversion {
 public:
  static absl::StatusOr<Conversion> load(std::shared_ptr<const Context> context);

  // n elements of x to y, which do not overlap; of equal types, a plain copy. INVALID_ARGUMENT: a type that
  // is neither kF32 nor kBF16.
  absl::Status convert(Stream& stream, DType from, const void* x, DType to, void* y, std::size_t n) const;

 private:
  Conversion(Module module, Kernel<ConversionParams> narrow, Kernel<ConversionParams> widen)
      : module_(std::move(module)), narrow_(narrow), widen_(widen) {}

  Module module_;
  Kernel<ConversionParams> narrow_, widen_;
};

}  // namespace paceline::cuda
