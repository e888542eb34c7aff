#include "runtime/tensor/cpu/cpu_lowering.h"

#include <new>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/tensor/cpu/converted.h"
#include "runtime/tensor/cpu/operators.h"

namespace paceline::tensor::cpu {

namespace {

// Whether oneDNN has a fast bf16 product for this processor.
bool has_bf16(const DnnlContext&) {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core_bf16:
    case dnnl::cpu_isa::avx512_core_amx:
      return true;
    default:
      return false;
  }
}

}  // namespace

CpuLowering::CpuLowering(const Schedule& schedule, Precision precision)
    : schedule_(schedule), layouts_(schedule.tensors.size()) {
  if (precision == Precision::kBF16) {
    rounds_ = !has_bf16(context_);
    if (!rounds_) operand_type_ = dnnl::memory::data_type::bf16;
  }
  for (std::size_t i = 0; i < schedule.tensors.size(); ++i) {
    const Tensor& t = schedule.tensors[i];
    if (t.place != Place::kArena && t.element_bytes == 4) layouts_[i] = plain_layout(t.dims);
  }
}

std::size_t CpuLowering::bytes(TensorId id) const {
  const Tensor& t = tensor(id);
  return t.element_bytes == 4 ? layout(id).get_size()
                              : elements(id) * static_cast<std::size_t>(t.element_bytes);
}

std::size_t CpuLowering::shared_bytes() const {
  std::size_t bytes = 0;
  for (const Packed& p : packed_) bytes += p.packed->bytes();
  return bytes;
}

absl::Status CpuLowering::allocate() {
  for (const Packed& p : packed_) {
    try {
      p.packed->allocate();
    } catch (const std::bad_alloc&) {
      return no_memory(p.packed->bytes(), "a weight in the form that its product wants");
    }
  }
  return absl::OkStatus();
}

std::shared_ptr<PackedWeight> CpuLowering::packed(TensorId weight, const Layout& plain, const Layout& form,
                                                  const ColumnOrder& order) {
  const auto same_order = [&](const ColumnOrder& other) {
    return (order == nullptr) == (other == nullptr) && (order == nullptr || *order == *other);
  };
  for (const Packed& p : packed_) {
    if (p.weight == weight && p.form == form && same_order(p.order)) return p.packed;
  }
  auto made = std::make_shared<PackedWeight>(context_, plain, form, order, rounds_);
  packed_.push_back({weight, form, order, made});
  return made;
}

absl::StatusOr<std::unique_ptr<Operator>> CpuLowering::lower(const Operation& operation) {
  for (const TensorId id : operation.outputs) {
    const TensorId like = tensor(id).like;
    if (like >= 0) set_layout(id, layout(like));
  }
  PL_ASSIGN_OR_RETURN(Lowered made, make(operation));
  std::unique_ptr<Operator> result;
  PL_RETURN_IF_ERROR(dnnl_guard([&] { result = converted(std::move(made), operation); }));
  return result;
}

std::unique_ptr<Operator> CpuLowering::converted(Lowered made, const Operation& operation) {
  std::unique_ptr<Converted> wrapper;
  for (std::size_t i = 0; i < made.wanted.size(); ++i) {
    const Wanted& wanted = made.wanted[i];
    const Layout& own = layout(operation.inputs[i]);
    if (wanted.as_is || (wanted.layout == own && !wanted.rounded)) continue;
    if (wrapper == nullptr) wrapper = std::make_unique<Converted>(std::move(made.op));
    wrapper->convert(context_, i, own, wanted.layout, wanted.rounded);
  }
  return wrapper != nullptr ? std::move(wrapper) : std::move(made.op);
}

absl::StatusOr<Lowered> CpuLowering::make(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kLinear:
      return make_linear(*this, operation);
    case OperationKind::kLinearBackwardData:
      return make_linear_backward_data(*this, operation);
    case OperationKind::kLinearBackwardWeights:
      return make_linear_backward_weights(*this, operation);
    case OperationKind::kConv2d:
      return make_conv(*this, operation);
    case OperationKind::kConv2dBackwardData:
      return make_conv_backward_data(*this, operation);
    case OperationKind::kConv2dBackwardWeights:
      return make_conv_backward_weights(*this, operation);
    case OperationKind::kMaxPool2d:
      return make_pool(*this, operation);
    case OperationKind::kMaxPool2dBackward:
      return make_pool_backward(*this, operation);
    case OperationKind::kRelu:
    case OperationKind::kGelu:
    case OperationKind::kTanh:
    case OperationKind::kSigmoid:
    case OperationKind::kReluBackward:
    case OperationKind::kTanhBackward:
    case OperationKind::kSigmoidBackward:
    case OperationKind::kGeluBackward:
    case OperationKind::kAdd:
    case OperationKind::kSumRows:
    case OperationKind::kMultiply:
    case OperationKind::kScale:
    case OperationKind::kReshape:
      return make_pointwise(*this, operation);
    case OperationKind::kEmbedding:
    case OperationKind::kEmbeddingBackward:
    case OperationKind::kLayerNorm:
    case OperationKind::kLayerNormBackward:
    case OperationKind::kCausalSelfAttention:
    case OperationKind::kCausalSelfAttentionBackward:
    case OperationKind::kKeepKeysValues:
    case OperationKind::kCachedSelfAttention:
    case OperationKind::kAtPosition:
      return make_sequence(*this, operation);
    case OperationKind::kSoftmaxCrossEntropy:
    case OperationKind::kSoftmaxCrossEntropyBackward:
    case OperationKind::kSigmoidCrossEntropy:
    case OperationKind::kSigmoidCrossEntropyBackward:
    case OperationKind::kMeanSquaredError:
    case OperationKind::kMeanSquaredErrorBackward:
    case OperationKind::kScores:
      return make_loss(*this, operation);
    case OperationKind::kEmbeddingAdd:
    case OperationKind::kAddLayerNorm:
    case OperationKind::kLinearGelu:
    case OperationKind::kLinearGeluBackwardData:
      break;  // it asks for none of them (Device::joins)
  }
  return absl::UnimplementedError("the CPU does not know this operation");
}

}  // namespace paceline::tensor::cpu
