#include "runtime/tensor/cpu/converted.h"

#include <utility>

#include "runtime/tensor/cpu/elementwise.h"

namespace paceline::tensor::cpu {

void Converted::convert(const DnnlContext& context, std::size_t input, const Layout& from, const Layout& to,
                        bool rounded) {
  Step step;
  step.input = input;
  if (rounded) {
    step.rounded_elements = from.get_size() / sizeof(float);
    step.rounding_offset = scratch_.add(from.get_size());
  }
  step.changes = from != to;
  if (step.changes) {
    step.copy_offset = scratch_.add(to.get_size());
    step.change = LayoutChange(context, from, to, scratch_);
  }
  steps_.push_back(std::move(step));
}

Operator::Needs Converted::needs() const {
  Needs needs = op_->needs();
  needs.scratch_bytes = scratch_.bytes();
  for (const Step& step : steps_) {
    if (step.input == needs.shared_input) needs.sharing = Sharing::kNever;
  }
  return needs;
}

void Converted::bind(const Addresses& addresses) {
  Addresses inner = addresses;
  auto* scratch = static_cast<std::byte*>(addresses.scratch);
  for (Step& step : steps_) {
    void* current = addresses.inputs[step.input];
    if (step.rounded_elements > 0) {
      step.source = static_cast<const float*>(current);
      step.rounding = reinterpret_cast<float*>(scratch + step.rounding_offset);
      current = step.rounding;
    }
    if (step.changes) {
      step.change.bind(current, scratch + step.copy_offset, scratch);
      current = scratch + step.copy_offset;
    }
    inner.inputs[step.input] = current;
  }
  op_->bind(inner);
}

absl::Status Converted::run(const RunContext& context) {
  for (const Step& step : steps_) {
    if (step.rounded_elements > 0) round_to_bf16(step.source, step.rounding, step.rounded_elements);
    if (step.changes) step.change.run();
  }
  return op_->run(context);
}

}  // namespace paceline::tensor::cpu
