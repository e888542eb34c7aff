#include "runtime/cuda/weights_hash.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/vector_hash.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

namespace {
constexpr std::size_t kWarps = kHashThreads / 32;
constexpr std::size_t kMostHashParts = 1024;
}  // namespace

absl::StatusOr<WeightsHash> WeightsHash::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), weights_hash_image()));
  PL_ASSIGN_OR_RETURN(const auto kernel, module.kernel<WeightsHashParams>("weights_hash"));
  return WeightsHash(std::move(module), kernel);
}

std::uint32_t WeightsHash::parts(std::size_t n) {
  const std::size_t blocks = (n + block_hash::kFloats - 1) / block_hash::kFloats;
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>((blocks + kWarps - 1) / kWarps, 1, kMostHashParts));
}

absl::Status WeightsHash::add(Stream& stream, const float* weights, std::size_t n,
                              std::uint64_t* sums) const {
  return kernel_.launch(stream, {.columns = parts(n), .threads = kHashThreads},
                        {.weights = weights, .partials = sums, .n = n});
}

std::uint64_t WeightsHash::result(std::span<const std::uint64_t> sums, std::size_t n) {
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return block_hash::end(sum, n * sizeof(float));
}

}  // namespace paceline::cuda
