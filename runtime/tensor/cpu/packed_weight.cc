#include "runtime/tensor/cpu/packed_weight.h"

#include <utility>

#include "runtime/tensor/cpu/elementwise.h"

namespace paceline::tensor::cpu {

PackedWeight::PackedWeight(const DnnlContext& context, const Layout& plain, const Layout& form,
                           ColumnOrder order, bool rounded)
    : elements_(plain.get_size() / sizeof(float)),
      order_(std::move(order)),
      rounded_(rounded),
      copies_(order_ != nullptr || rounded || form != plain),
      only_rounds_(rounded && order_ == nullptr && form == plain) {
  if (!copies_) return;
  form_bytes_ = form.get_size();
  if (only_rounds_) return;
  Scratch scratch;
  change_ = LayoutChange(context, plain, form, scratch);
  scratch_bytes_ = scratch.bytes();
  if (order_ != nullptr || rounded_) staged_bytes_ = elements_ * sizeof(float);
}

std::size_t PackedWeight::bytes() const {
  return form_bytes_ + staged_bytes_ + scratch_bytes_;
}

void PackedWeight::allocate() {
  if (!copies_) return;
  form_ = AlignedBuffer(form_bytes_);
  scratch_ = AlignedBuffer(scratch_bytes_);
  if (staged_bytes_ > 0) staged_ = AlignedBuffer(staged_bytes_);
}

void PackedWeight::bind(const void* weight) {
  weight_ = static_cast<const float*>(weight);
  version_ = 0;
  if (!copies_ || only_rounds_) return;
  change_.bind(staged_.data() != nullptr ? staged_.data() : weight, form_.data(), scratch_.data());
}

void PackedWeight::refresh(std::uint64_t version) {
  if (!copies_ || version == version_) return;
  version_ = version;
  if (only_rounds_) return round_to_bf16(weight_, reinterpret_cast<float*>(form_.data()), elements_);
  const float* current = weight_;
  auto* staged = reinterpret_cast<float*>(staged_.data());
  if (order_ != nullptr) {
    gather_columns(current, *order_, elements_ / order_->size(), staged);
    current = staged;
  }
  if (rounded_) round_to_bf16(current, staged, elements_);
  change_.run();
}

}  // namespace paceline::tensor::cpu
