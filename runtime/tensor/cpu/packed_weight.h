#pragma once

// A weight in the form that a product wants: blocked, perhaps bf16. Made anew when the weights changed, once
// for all the products that share it.

#include <cstdint>

#include "runtime/tensor/cpu/aligned_buffer.h"
#include "runtime/tensor/cpu/column_order.h"
#include "runtime/tensor/cpu/dnnl_primitive.h"

namespace paceline::tensor::cpu {

class PackedWeight {
 public:
  // `order` (may be null): the columns are moved first. `rounded`: to bf16 values first, in fp32.
  PackedWeight(const DnnlContext& context, const Layout& plain, const Layout& form, ColumnOrder order,
               bool rounded);
  std::size_t bytes() const;
  // Takes them, before the first bind(). std::bad_alloc.
  void allocate();
  void bind(const void* weight);
  // Valid after bind().
  void* data() const { return copies_ ? static_cast<void*>(form_.data()) : const_cast<float*>(weight_); }
  void refresh(std::uint64_t version);

 private:
  const std::size_t elements_;
  const ColumnOrder order_;
  const bool rounded_;
  const bool copies_;       // false: the weight itself has the form
  const bool only_rounds_;  // into the form, and nothing else
  const float* weight_ = nullptr;
  std::uint64_t version_ = 0;
  std::size_t form_bytes_ = 0, staged_bytes_ = 0, scratch_bytes_ = 0;
  AlignedBuffer form_;
  AlignedBuffer staged_;  // moved, rounded; row-major
  LayoutChange change_;
  AlignedBuffer scratch_;
};

}  // namespace paceline::tensor::cpu
