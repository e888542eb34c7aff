#include "runtime/tensor/gpu/kernels.h"

#include <utility>

#include "base/status.h"

namespace paceline::tensor::gpu {

absl::StatusOr<std::unique_ptr<const Kernels>> Kernels::load(std::shared_ptr<const cuda::Context> context) {
  PL_ASSIGN_OR_RETURN(auto conversion, cuda::Conversion::load(context));
  PL_ASSIGN_OR_RETURN(auto elementwise, cuda::Elementwise::load(context));
  PL_ASSIGN_OR_RETURN(auto columns_value, cuda::Columns::load(context));
  auto columns = std::make_unique<const cuda::Columns>(std::move(columns_value));
  PL_ASSIGN_OR_RETURN(auto layer_norm, cuda::LayerNorm::load(context, *columns));
  PL_ASSIGN_OR_RETURN(auto cross_entropy, cuda::CrossEntropy::load(context));
  PL_ASSIGN_OR_RETURN(auto embedding, cuda::Embedding::load(context));
  PL_ASSIGN_OR_RETURN(auto windows, cuda::Windows::load(context));
  PL_ASSIGN_OR_RETURN(auto attention, cuda::Attention::load(context));
  PL_ASSIGN_OR_RETURN(auto cached_attention, cuda::CachedAttention::load(context));
  PL_ASSIGN_OR_RETURN(auto small_losses, cuda::SmallLosses::load(context));
  return std::unique_ptr<const Kernels>(
      new Kernels{std::move(conversion), std::move(elementwise), std::move(columns), std::move(layer_norm),
                  std::move(cross_entropy), std::move(embedding), std::move(windows), std::move(attention),
                  std::move(cached_attention), std::move(small_losses)});
}

}  // namespace paceline::tensor::gpu
