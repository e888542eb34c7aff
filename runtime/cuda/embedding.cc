#include "runtime/cuda/embedding.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

namespace {

// Accesses to one row.
std::size_t accesses(DType type, std::size_t width) {
  return whole_vectors(type, width) ? width / wide_elements(type) : width;
}

// Blocks for at most `count` rows, with as many warps as a row has work for. No more of them than keep the
// GPU busy: they go on in strides.
LaunchShape blocks_for(std::size_t count, std::size_t row_accesses, const Stream& stream) {
  constexpr std::size_t kWarpThreads = 32, kBlocksOfMultiprocessor = 16;
  const std::size_t busy =
      static_cast<std::size_t>(stream.context().device().multiprocessors) * kBlocksOfMultiprocessor;
  const std::size_t threads = (row_accesses + kWarpThreads - 1) / kWarpThreads * kWarpThreads;
  return {.columns = static_cast<std::uint32_t>(std::min(count, busy)),
          .threads =
              static_cast<std::uint32_t>(std::clamp<std::size_t>(threads, kWarpThreads, kEmbeddingThreads))};
}

}  // namespace

absl::StatusOr<Embedding> Embedding::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), embedding_image()));
  PL_LOAD_PAIR(const auto forward, module, EmbeddingParams, embed);
  PL_LOAD_PAIR(const auto forward_any, module, EmbeddingParams, embed_any);
  PL_LOAD_PAIR(const auto pieces, module, EmbeddingPiecesParams, embed_pieces);
  PL_LOAD_PAIR(const auto pieces_any, module, EmbeddingPiecesParams, embed_pieces_any);
  PL_ASSIGN_OR_RETURN(const auto join, module.kernel<EmbeddingJoinParams>("embed_join"));
  return Embedding(std::move(module), {forward, forward_any, pieces, pieces_any, join});
}

absl::Status Embedding::forward(Stream& stream, DType type, const EmbeddingParams& params) const {
  if (params.rows == 0) return absl::OkStatus();
  const LaunchShape shape = strided_shape(params.rows * accesses(type, params.width), kEmbeddingThreads,
                                          stream.context().device().multiprocessors);
  return (whole_vectors(type, params.width) ? kernels_.forward : kernels_.forward_any)
      .launch(stream, type, shape, params);
}

absl::Status Embedding::backward(Stream& stream, DType type, const EmbeddingPiecesParams& params,
                                 const EmbeddingJoin* joins, const EmbeddingCounts& most) const {
  if (most.pieces == 0) return absl::OkStatus();
  PL_RETURN_IF_ERROR(
      (whole_vectors(type, params.width) ? kernels_.pieces : kernels_.pieces_any)
          .launch(stream, type, blocks_for(most.pieces, accesses(type, params.width), stream), params));
  if (most.joins == 0) return absl::OkStatus();
  return kernels_.join.launch(stream, blocks_for(most.joins, params.width, stream),
                              {.counts = params.counts,
                               .joins = joins,
                               .partials = params.partials,
                               .gradient = params.gradient,
                               .width = params.width});
}

}  // namespace paceline::cuda
