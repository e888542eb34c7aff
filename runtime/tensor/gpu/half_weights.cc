#include "runtime/tensor/gpu/half_weights.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace paceline::tensor::gpu {

absl::Status HalfWeights::want(std::shared_ptr<const cuda::Context> context, std::size_t elements,
                               std::size_t offset, std::size_t count) {
  if (!memory_.has_value()) {
    PL_ASSIGN_OR_RETURN(cuda::DeviceBuffer made,
                        cuda::DeviceBuffer::create(std::move(context), elements * 2));
    memory_.emplace(std::move(made));
    elements_ = elements;
  }
  PL_CHECK(elements == elements_ && offset + count <= elements,
           "the programs of a queue have the same weights");
  const auto [found, made] = parameters_.try_emplace(offset, Parameter{count, nullptr, 0});
  PL_CHECK(found->second.count == count, "a parameter has one size");
  return absl::OkStatus();
}

void* HalfWeights::address(std::size_t offset) const {
  return memory_->as<std::byte>() + offset * 2;
}

absl::Status HalfWeights::refresh(cuda::Stream& stream, const cuda::Conversion& conversion,
                                  std::size_t offset, const float* weights, std::uint64_t version) {
  Parameter& parameter = parameters_.at(offset);
  if (parameter.of == weights && parameter.version == version) return absl::OkStatus();
  PL_RETURN_IF_ERROR(
      conversion.convert(stream, DType::kF32, weights, DType::kBF16, address(offset), parameter.count));
  parameter.of = weights;
  parameter.version = version;
  return absl::OkStatus();
}

void* HalfWeights::whole(std::size_t elements) const {
  if (!memory_.has_value()) return nullptr;
  PL_CHECK(elements == elements_, "the programs of a queue have the weights that are trained on it");
  return memory_->address();
}

void HalfWeights::written(const float* weights, std::uint64_t from, std::uint64_t to, bool surely) {
  for (auto& [offset, parameter] : parameters_) {
    const float* const own = weights + offset;
    // What may be as it was is known only where that is.
    const bool known = surely || (parameter.of == own && parameter.version == from);
    parameter.of = known ? own : nullptr;
    parameter.version = to;
  }
}

void HalfWeights::forget() {
  for (auto& [offset, parameter] : parameters_) parameter.of = nullptr;
}

}  // namespace paceline::tensor::gpu
