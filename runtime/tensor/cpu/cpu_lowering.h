#pragma once

// Makes the CPU's operators and keeps the layouts of a schedule's tensors. Contract: device.h.
//
// Layouts: whatever comes from outside (batch, weights, gradients) is row-major. A convolution chooses its
// result's layout (channels in blocks of a vector register); operators that work on single elements and the
// pooling keep it; a gradient has its value's layout. An operator that needs another layout or type of an
// input than it has gets a converted copy in its scratch.

#include <memory>
#include <vector>

#include "runtime/tensor/cpu/dnnl_primitive.h"
#include "runtime/tensor/cpu/packed_weight.h"
#include "runtime/tensor/device.h"

namespace paceline::tensor::cpu {

// How an operator wants one input.
struct Wanted {
  bool as_is = true;
  Layout layout;         // where not as it is
  bool rounded = false;  // to bf16 values, in fp32
};

struct Lowered {
  std::unique_ptr<Operator> op;
  std::vector<Wanted> wanted;  // by input; shorter: the others as they are
};

class CpuLowering final : public Lowering {
 public:
  CpuLowering(const Schedule& schedule, Precision precision);
  absl::StatusOr<std::unique_ptr<Operator>> lower(const Operation& operation) override;
  std::size_t bytes(TensorId tensor) const override;
  std::size_t shared_bytes() const override;
  absl::Status allocate() override;

  // ---- for the operators' makers ----
  bool training() const { return schedule_.training; }
  const DnnlContext& context() const { return context_; }
  const Tensor& tensor(TensorId id) const { return schedule_.tensors[static_cast<std::size_t>(id)]; }
  std::size_t elements(TensorId id) const { return static_cast<std::size_t>(element_count(tensor(id).dims)); }
  const Layout& layout(TensorId id) const { return layouts_[static_cast<std::size_t>(id)]; }
  void set_layout(TensorId id, const Layout& layout) { layouts_[static_cast<std::size_t>(id)] = layout; }

  // Of a product's operands: bf16 where that is asked for and the processor has it.
  dnnl::memory::data_type operand_type() const { return operand_type_; }
  // The operand in that type; where the processor lacks bf16, its rounded values in fp32.
  Wanted operand(const Layout& layout) const { return {false, layout, rounds_}; }
  // Shared by all that want the weight in this form.
  std::shared_ptr<PackedWeight> packed(TensorId weight, const Layout& plain, const Layout& form,
                                       const ColumnOrder& order = nullptr);

 private:
  absl::StatusOr<Lowered> make(const Operation& operation);
  std::unique_ptr<Operator> converted(Lowered made, const Operation& operation);

  const Schedule& schedule_;
  DnnlContext context_;
  dnnl::memory::data_type operand_type_ = dnnl::memory::data_type::f32;
  bool rounds_ = false;
  std::vector<Layout> layouts_;  // by tensor
  struct Packed {
    TensorId weight;
    Layout form;
    ColumnOrder order;
    std::shared_ptr<PackedWeight> packed;
  };
  std::vector<Packed> packed_;
};

}  // namespace paceline::tensor::cpu
