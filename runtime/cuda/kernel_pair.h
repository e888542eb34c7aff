#pragma once

// A kernel in its two types, named name_f32 and name_bf16.

#include <array>

#include "absl/status/statusor.h"
#include "base/dtype.h"
#include "runtime/cuda/module.h"

namespace paceline::cuda {

template <typename Params>
class KernelPair {
 public:
  // The names live as long as the pair.
  static absl::StatusOr<KernelPair> load(const Module& module, const char* f32, const char* bf16) {
    PL_ASSIGN_OR_RETURN(const Kernel<Params> first, module.kernel<Params>(f32));
    PL_ASSIGN_OR_RETURN(const Kernel<Params> second, module.kernel<Params>(bf16));
    return KernelPair({first, second});
  }

  // INVALID_ARGUMENT where the type is neither.
  absl::Status launch(Stream& stream, DType type, const LaunchShape& shape, const Params& params) const {
    if (type != DType::kF32 && type != DType::kBF16)
      return absl::InvalidArgumentError(str_cat("there are no kernels of type ", dtype_name(type)));
    return pair_[type == DType::kF32 ? 0 : 1].launch(stream, shape, params);
  }

 private:
  explicit KernelPair(const std::array<Kernel<Params>, 2>& pair) : pair_(pair) {}

  std::array<Kernel<Params>, 2> pair_;
};

// PL_LOAD_PAIR(auto x, module, Params, name): the pair of name_f32 and name_bf16, or returns the error.
#define PL_LOAD_PAIR(lhs, module, Params, name) \
  PL_ASSIGN_OR_RETURN(lhs, KernelPair<Params>::load(module, #name "_f32", #name "_bf16"))

}  // namespace paceline::cuda
