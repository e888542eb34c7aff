#pragma once

// An operator some of whose inputs are converted first: to another layout, to bf16, or rounded.

#include <memory>
#include <vector>

#include "runtime/tensor/cpu/dnnl_primitive.h"
#include "runtime/tensor/device.h"

namespace paceline::tensor::cpu {

class Converted final : public Operator {
 public:
  explicit Converted(std::unique_ptr<Operator> op) : op_(std::move(op)) {
    scratch_.add(op_->needs().scratch_bytes);
  }
  // Input `input` lies as `from`; the operator gets it as `to`, its values rounded to bf16 where `rounded`
  // says so.
  void convert(const DnnlContext& context, std::size_t input, const Layout& from, const Layout& to,
               bool rounded);

  Needs needs() const override;
  void bind(const Addresses& addresses) override;
  absl::Status run(const RunContext& context) override;

 private:
  struct Step {
    std::size_t input = 0;
    std::size_t rounded_elements = 0;  // 0: not rounded
    std::size_t rounding_offset = 0;
    std::size_t copy_offset = 0;
    bool changes = false;  // has a `change`
    LayoutChange change;
    const float* source = nullptr;
    float* rounding = nullptr;
  };
  std::unique_ptr<Operator> op_;
  std::vector<Step> steps_;
  Scratch scratch_;  // the operator's own part is at the beginning
};

}  // namespace paceline::tensor::cpu
