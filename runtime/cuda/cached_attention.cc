#include "runtime/cuda/cached_attention.h"

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

absl::StatusOr<CachedAttention> CachedAttention::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), cached_attention_image()));
  PL_LOAD_PAIR(const auto keep, module, KeepKeysValuesParams, keep_keys_values);
  PL_LOAD_PAIR(const auto attend, module, CachedAttentionParams, cached_attention);
  return CachedAttention(std::move(module), keep, attend);
}

absl::Status CachedAttention::keep(Stream& stream, DType type, const KeepKeysValuesParams& params) const {
  const std::size_t n = std::size_t{params.time} * 2 * params.width;
  if (n == 0) return absl::OkStatus();
  return keep_.launch(stream, type, strided_shape(n, kKeepThreads, stream.context().device().multiprocessors),
                      params);
}

absl::Status CachedAttention::attend(Stream& stream, DType type, const CachedAttentionParams& params) const {
  if (params.heads == 0) return absl::OkStatus();
  return attend_.launch(stream, type, {.columns = params.heads, .threads = kCachedAttentionWarps * 32},
                        params);
}

}  // namespace paceline::cuda
