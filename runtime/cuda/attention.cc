#include "runtime/cuda/attention.h"

#include <utility>

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

namespace {

constexpr std::uint32_t kSmallHeadSize = 64;

LaunchShape shape_of(const AttentionShape& shape) {
  const std::size_t warps = Attention::products(shape);
  return {.columns = static_cast<std::uint32_t>((warps + kAttentionWarps - 1) / kAttentionWarps),
          .threads = kAttentionWarps * 32};
}

absl::Status check(const AttentionShape& shape) {
  if (shape.head_size <= kMostHeadSize) return absl::OkStatus();
  return absl::UnimplementedError(
      str_cat("attention with heads of ", shape.head_size, "; the GPU's takes at most ", kMostHeadSize));
}

}  // namespace

absl::StatusOr<Attention> Attention::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), attention_image()));
  PL_LOAD_PAIR(const auto forward_64, module, AttentionParams, attention_64);
  PL_LOAD_PAIR(const auto forward_256, module, AttentionParams, attention_256);
  PL_LOAD_PAIR(const auto queries_64, module, AttentionBackwardParams, attention_queries_64);
  PL_LOAD_PAIR(const auto queries_256, module, AttentionBackwardParams, attention_queries_256);
  PL_LOAD_PAIR(const auto keys_64, module, AttentionBackwardParams, attention_keys_64);
  PL_LOAD_PAIR(const auto keys_256, module, AttentionBackwardParams, attention_keys_256);
  return Attention(std::move(module), {forward_64, forward_256, queries_64, queries_256, keys_64, keys_256});
}

absl::Status Attention::forward(Stream& stream, DType type, const AttentionParams& params) const {
  PL_RETURN_IF_ERROR(check(params.shape));
  if (products(params.shape) == 0) return absl::OkStatus();
  return (params.shape.head_size <= kSmallHeadSize ? kernels_.forward_64 : kernels_.forward_256)
      .launch(stream, type, shape_of(params.shape), params);
}

absl::Status Attention::backward(Stream& stream, DType type, const AttentionBackwardParams& params) const {
  PL_RETURN_IF_ERROR(check(params.shape));
  if (products(params.shape) == 0) return absl::OkStatus();
  const bool small = params.shape.head_size <= kSmallHeadSize;
  const LaunchShape shape = shape_of(params.shape);
  PL_RETURN_IF_ERROR(
      (small ? kernels_.queries_64 : kernels_.queries_256).launch(stream, type, shape, params));
  return (small ? kernels_.keys_64 : kernels_.keys_256).launch(stream, type, shape, params);
}

}  // namespace paceline::cuda
