#include "runtime/tensor/gpu/half_weights.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace paceline::tensor::gpu {

absl::Status HalfWeights::want(std::shared_ptr<const cuda::Context> context, std::size_t offset,
                               std::size_t count) {
  const auto found = copies_.find(offset);
  if (found != copies_.end()) {
    PL_CHECK(found->second.count == count, "a parameter has one size");
    return absl::OkStatus();
  }
  PL_ASSIGN_OR_RETURN(cuda::DeviceBuffer memory, cuda::DeviceBuffer::create(std::move(context), count * 2));
  copies_.try_emplace(offset, Copy{std::move(memory), count, nullptr, 0});
  return absl::OkStatus();
}

std::size_t HalfWeights::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [offset, copy] : copies_) bytes += copy.memory.bytes();
  return bytes;
}

void* HalfWeights::address(std::size_t offset) const {
  return copies_.at(offset).memory.address();
}

absl::Status HalfWeights::refresh(cuda::Stream& stream, const cuda::Conversion& conversion,
                                  std::size_t offset, const float* weights, std::uint64_t version) {
  Copy& copy = copies_.at(offset);
  if (copy.of == weights && copy.version == version) return absl::OkStatus();
  PL_RETURN_IF_ERROR(
      conversion.convert(stream, DType::kF32, weights, DType::kBF16, copy.memory.address(), copy.count));
  copy.of = weights;
  copy.version = version;
  return absl::OkStatus();
}

}  // namespace paceline::tensor::gpu
