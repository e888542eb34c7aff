#include "runtime/cuda/attention.h"

#include <utility>

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

namespace {

constexpr std::uint32_t kSmallHeadSize = 64;

// A warp for each query, or key, and of a large head for each part of what it makes.
LaunchShape plain_shape(const AttentionShape& shape) {
  const std::size_t warps = Attention::products(shape);
  return {.columns = static_cast<std::uint32_t>((warps + kAttentionWarps - 1) / kAttentionWarps),
          .rows = (shape.head_size + kMostHeldHeadSize - 1) / kMostHeldHeadSize,
          .threads = kAttentionWarps * 32};
}

LaunchShape flash_shape(const FlashSizes& sizes, const AttentionShape& shape) {
  return {.columns = shape.rows * shape.heads * ((shape.time + sizes.own() - 1) / sizes.own()),
          .threads = kAttentionWarps * 32};
}

// Whether groups of four warps make products (kernels/warp_group.h).
bool multiplies_by_groups(const DeviceFacts& device) {
  return device.major == 9 && device.minor == 0;
}

}  // namespace

absl::StatusOr<Attention::Flash> Attention::Flash::load(const Module& module, const FlashKernels& sizes,
                                                        const char* forward, const char* queries,
                                                        const char* keys) {
  PL_ASSIGN_OR_RETURN(const auto first,
                      module.kernel<AttentionParams>(forward, sizes.forward.forward_bytes()));
  PL_ASSIGN_OR_RETURN(const auto second,
                      module.kernel<AttentionBackwardParams>(queries, sizes.queries.queries_bytes()));
  PL_ASSIGN_OR_RETURN(const auto third,
                      module.kernel<AttentionBackwardParams>(keys, sizes.keys.keys_bytes()));
  return Flash{sizes, first, second, third};
}

absl::StatusOr<Attention> Attention::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(context, attention_image()));
  PL_LOAD_PAIR(const auto forward_64, module, AttentionParams, attention_64);
  PL_LOAD_PAIR(const auto queries_64, module, AttentionBackwardParams, attention_queries_64);
  PL_LOAD_PAIR(const auto keys_64, module, AttentionBackwardParams, attention_keys_64);
  PL_LOAD_PAIR(const auto forward_256, module, AttentionParams, attention_256);
  PL_LOAD_PAIR(const auto queries_256, module, AttentionBackwardParams, attention_queries_256);
  PL_LOAD_PAIR(const auto keys_256, module, AttentionBackwardParams, attention_keys_256);
  PL_LOAD_PAIR(const auto forward_any, module, AttentionParams, attention_any);
  PL_LOAD_PAIR(const auto queries_any, module, AttentionBackwardParams, attention_queries_any);
  PL_LOAD_PAIR(const auto keys_any, module, AttentionBackwardParams, attention_keys_any);
  const bool by_groups = multiplies_by_groups(context->device());
  PL_ASSIGN_OR_RETURN(Module flash, Module::load(std::move(context), flash_attention_image()));
  PL_ASSIGN_OR_RETURN(const Flash flash_64,
                      by_groups ? Flash::load(flash, kHopper64, "hopper_attention_64",
                                              "hopper_attention_queries_64", "hopper_attention_keys_64")
                                : Flash::load(flash, kFlash64, "flash_attention_64",
                                              "flash_attention_queries_64", "flash_attention_keys_64"));
  PL_ASSIGN_OR_RETURN(const Flash flash_128,
                      Flash::load(flash, kFlash128, "flash_attention_128", "flash_attention_queries_128",
                                  "flash_attention_keys_128"));
  return Attention(std::move(module), std::move(flash),
                   {Plain{forward_64, queries_64, keys_64}, Plain{forward_256, queries_256, keys_256},
                    Plain{forward_any, queries_any, keys_any}},
                   flash_64, flash_128);
}

const Attention::Flash* Attention::flash_for(DType type, const AttentionShape& shape) const {
  if (type != DType::kBF16 || !whole_vectors(type, shape.head_size)) return nullptr;
  if (shape.head_size <= kFlash64.forward.head_size) return &flash_64_;
  return shape.head_size <= kFlash128.forward.head_size ? &flash_128_ : nullptr;
}

const Attention::Plain& Attention::plain_for(const AttentionShape& shape) const {
  if (shape.head_size <= kSmallHeadSize) return plain_[0];
  return shape.head_size <= kMostHeldHeadSize ? plain_[1] : plain_[2];
}

absl::Status Attention::forward(Stream& stream, DType type, const AttentionParams& params) const {
  if (products(params.shape) == 0) return absl::OkStatus();
  if (const Flash* const flash = flash_for(type, params.shape); flash != nullptr)
    return flash->forward.launch(stream, flash_shape(flash->sizes.forward, params.shape), params);
  return plain_for(params.shape).forward.launch(stream, type, plain_shape(params.shape), params);
}

absl::Status Attention::backward(Stream& stream, DType type, const AttentionBackwardParams& params) const {
  if (products(params.shape) == 0) return absl::OkStatus();
  if (const Flash* const flash = flash_for(type, params.shape); flash != nullptr) {
    PL_RETURN_IF_ERROR(
        flash->queries.launch(stream, flash_shape(flash->sizes.queries, params.shape), params));
    return flash->keys.launch(stream, flash_shape(flash->sizes.keys, params.shape), params);
  }
  const Plain& plain = plain_for(params.shape);
  const LaunchShape shape = plain_shape(params.shape);
  PL_RETURN_IF_ERROR(plain.queries.launch(stream, type, shape, params));
  return plain.keys.launch(stream, type, shape, params);
}

}  // namespace paceline::cuda
