#include "runtime/cuda/optimizer.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

namespace {

constexpr std::uint64_t kAccess = 4;  // fp32 elements of 16 bytes

LaunchShape update_shape(std::size_t chunks) {
  return {.columns = static_cast<std::uint32_t>(chunks), .threads = kUpdateThreads};
}

}  // namespace

std::vector<UpdateChunk> update_chunks(std::span<const UpdateRange> ranges) {
  std::vector<UpdateChunk> chunks;
  for (const UpdateRange& range : ranges) {
    for (std::uint64_t at = range.begin; at < range.end;) {
      // A range that begins inside an access goes to its end first.
      const std::uint64_t most = at % kAccess == 0 ? kMostChunk : kAccess - at % kAccess;
      const std::uint64_t count = std::min(most, range.end - at);
      chunks.push_back(
          {.begin = at, .count = static_cast<std::uint32_t>(count), .decay = range.decay ? 1U : 0U});
      at += count;
    }
  }
  return chunks;
}

std::uint32_t square_parts(std::size_t n) {
  return parts_of(n);
}

absl::StatusOr<GpuOptimizer> GpuOptimizer::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), optimizer_image()));
  PL_ASSIGN_OR_RETURN(const auto squares, module.kernel<SquaresParams>("sum_squares"));
  PL_ASSIGN_OR_RETURN(const auto clip, module.kernel<ClipParams>("clip_by_norm"));
  PL_ASSIGN_OR_RETURN(const auto sgd, module.kernel<SgdParams>("sgd"));
  PL_ASSIGN_OR_RETURN(const auto adagrad, module.kernel<AdagradParams>("adagrad"));
  PL_ASSIGN_OR_RETURN(const auto adam, module.kernel<AdamParams>("adam"));
  return GpuOptimizer(std::move(module), {squares, clip, sgd, adagrad, adam});
}

absl::Status GpuOptimizer::clip(Stream& stream, const float* gradient, std::size_t n, double clip_norm,
                                double* scratch, Clipping* result) const {
  const std::uint32_t parts = square_parts(n);
  PL_RETURN_IF_ERROR(kernels_.squares.launch(stream, {.columns = parts, .threads = kSquaresThreads},
                                             {.x = gradient, .partials = scratch, .n = n}));
  return kernels_.clip.launch(
      stream, {.threads = kSquaresThreads},
      {.partials = scratch, .parts = parts, .clip_norm = clip_norm, .result = result});
}

absl::Status GpuOptimizer::sgd(Stream& stream, const SgdParams& params, std::size_t chunks) const {
  return chunks == 0 ? absl::OkStatus() : kernels_.sgd.launch(stream, update_shape(chunks), params);
}

absl::Status GpuOptimizer::adagrad(Stream& stream, const AdagradParams& params, std::size_t chunks) const {
  return chunks == 0 ? absl::OkStatus() : kernels_.adagrad.launch(stream, update_shape(chunks), params);
}

absl::Status GpuOptimizer::adam(Stream& stream, const AdamParams& params, std::size_t chunks) const {
  return chunks == 0 ? absl::OkStatus() : kernels_.adam.launch(stream, update_shape(chunks), params);
}

}  // namespace paceline::cuda
