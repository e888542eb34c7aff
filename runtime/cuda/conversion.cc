#include "runtime/cuda/conversion.h"

#include <utility>

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

absl::StatusOr<Conversion> Conversion::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), conversion_image()));
  PL_ASSIGN_OR_RETURN(const auto narrow, module.kernel<ConversionParams>("narrow"));
  PL_ASSIGN_OR_RETURN(const auto widen, module.kernel<ConversionParams>("widen"));
  return Conversion(std::move(module), narrow, widen);
}

absl::Status Conversion::convert(Stream& stream, DType from, const void* x, DType to, void* y,
                                 std::size_t n) const {
  for (const DType type : {from, to}) {
    if (type != DType::kF32 && type != DType::kBF16)
      return absl::InvalidArgumentError(str_cat("there is no conversion of type ", dtype_name(type)));
  }
  if (n == 0) return absl::OkStatus();
  if (from == to) return stream.copy(y, x, n * dtype_bytes(from));
  const LaunchShape shape =
      strided_shape(n / kConversionWidth + 1, kConversionThreads, stream.context().device().multiprocessors);
  return (to == DType::kBF16 ? narrow_ : widen_).launch(stream, shape, {.x = x, .y = y, .n = n});
}

}  // namespace paceline::cuda
