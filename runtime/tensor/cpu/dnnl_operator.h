#pragma once

// An operator that is one oneDNN primitive, and what stands around it: packed weights before, parameters'
// gradients after.

#include <memory>
#include <vector>

#include "runtime/tensor/cpu/cpu_lowering.h"

namespace paceline::tensor::cpu {

class DnnlOperator final : public Operator {
 public:
  DnnlOperator(const DnnlContext& context, const dnnl::primitive& primitive)
      : context_(context), primitive_(context, primitive) {}

  // Argument `argument` (DNNL_ARG_...) is the operation's input or output of that number, in that layout.
  void input(int argument, std::size_t number, const Layout& layout);
  void output(int argument, std::size_t number, const Layout& layout);
  // Argument `argument` is the packed form of input `number`.
  void weight(int argument, std::size_t number, const Layout& form, std::shared_ptr<PackedWeight> packed);
  // Output `number` is a parameter's gradient, row-major; the primitive makes it in the layout `made`.
  // `adds`: to what is there, always; else only when gradients accumulate. `order`: made with its columns
  // moved.
  void gradient(int argument, std::size_t number, const Layout& made, const Layout& plain, bool adds,
                ColumnOrder order = nullptr);
  void scratchpad(const Layout& layout);
  // A ReLU of output 0, in place. (oneDNN's own would turn NaN into zero and hide a training that diverged.)
  void relu(std::size_t elements) { relu_elements_ = elements; }

  Needs needs() const override;
  void bind(const Addresses& addresses) override;
  absl::Status run(const RunContext& context) override;

 private:
  struct Argument {
    std::size_t number;   // of the primitive's argument
    std::size_t operand;  // of the operation's input or output
  };
  struct Weight {
    Argument argument;
    std::shared_ptr<PackedWeight> packed;
  };
  struct Gradient {
    Argument argument;
    std::size_t elements;
    bool adds;
    ColumnOrder order;
    bool changes;              // made in another layout than row-major
    std::size_t made_offset;   // in the scratch
    std::size_t plain_offset;  // in the scratch; where it lies row-major before it is moved or added
    LayoutChange change;
    float* target = nullptr;
    std::byte* scratch = nullptr;
    bool direct(bool adds_now) const { return !changes && order == nullptr && !adds_now; }
  };
  void finish(Gradient& gradient, bool adds);

  const DnnlContext& context_;
  DnnlPrimitive primitive_;
  std::vector<Argument> inputs_;
  std::vector<Argument> outputs_;
  std::vector<Weight> weights_;
  std::vector<Gradient> gradients_;
  Scratch scratch_;
  std::size_t scratchpad_number_ = 0;
  std::size_t scratchpad_offset_ = 0;
  bool has_scratchpad_ = false;
  std::size_t relu_elements_ = 0;
  float* relu_target_ = nullptr;
};

}  // namespace paceline::tensor::cpu
