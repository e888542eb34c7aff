#include "runtime/tensor/cpu/dnnl_operator.h"

#include <utility>

#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::tensor::cpu {

void DnnlOperator::input(int argument, std::size_t number, const Layout& layout) {
  inputs_.push_back({primitive_.argument(argument, layout), number});
}

void DnnlOperator::output(int argument, std::size_t number, const Layout& layout) {
  outputs_.push_back({primitive_.argument(argument, layout), number});
}

void DnnlOperator::weight(int argument, std::size_t number, const Layout& form,
                          std::shared_ptr<PackedWeight> packed) {
  weights_.push_back({{primitive_.argument(argument, form), number}, std::move(packed)});
}

void DnnlOperator::gradient(int argument, std::size_t number, const Layout& made, const Layout& plain,
                            bool adds, ColumnOrder order) {
  Gradient gradient{{primitive_.argument(argument, made), number},
                    plain.get_size() / sizeof(float),
                    adds,
                    std::move(order),
                    made != plain,
                    0,
                    0,
                    {}};
  gradient.made_offset = scratch_.add(made.get_size());
  if (gradient.changes) {
    gradient.plain_offset = scratch_.add(plain.get_size());
    gradient.change = LayoutChange(context_, made, plain, scratch_);
  }
  gradients_.push_back(std::move(gradient));
}

void DnnlOperator::scratchpad(const Layout& layout) {
  if (layout.get_size() == 0) return;
  has_scratchpad_ = true;
  scratchpad_number_ = primitive_.argument(DNNL_ARG_SCRATCHPAD, layout);
  scratchpad_offset_ = scratch_.add(layout.get_size());
}

Operator::Needs DnnlOperator::needs() const {
  Needs needs;
  needs.scratch_bytes = scratch_.bytes();
  return needs;
}

void DnnlOperator::bind(const Addresses& addresses) {
  auto* scratch = static_cast<std::byte*>(addresses.scratch);
  for (const Argument& a : inputs_) primitive_.bind(a.number, addresses.inputs[a.operand]);
  for (const Argument& a : outputs_) primitive_.bind(a.number, addresses.outputs[a.operand]);
  for (const Weight& w : weights_) {
    w.packed->bind(addresses.inputs[w.argument.operand]);
    primitive_.bind(w.argument.number, w.packed->data());
  }
  for (Gradient& g : gradients_) {
    g.target = static_cast<float*>(addresses.outputs[g.argument.operand]);
    g.scratch = scratch;
    primitive_.bind(g.argument.number, scratch + g.made_offset);
  }
  if (relu_elements_ > 0) relu_target_ = static_cast<float*>(addresses.outputs[0]);
  if (has_scratchpad_) primitive_.bind(scratchpad_number_, scratch + scratchpad_offset_);
}

absl::Status DnnlOperator::run(const RunContext& context) {
  for (const Weight& w : weights_) w.packed->refresh(context.weights_version);
  for (const Gradient& g : gradients_) {
    if (g.changes || g.order != nullptr) continue;  // always made in the scratch
    const bool direct = g.direct(g.adds || context.accumulate);
    primitive_.bind(g.argument.number, direct ? static_cast<void*>(g.target) : g.scratch + g.made_offset);
  }
  primitive_.run();
  if (relu_elements_ > 0) kernels().relu(relu_target_, relu_target_, relu_elements_);
  for (Gradient& g : gradients_) finish(g, g.adds || context.accumulate);
  return absl::OkStatus();
}

void DnnlOperator::finish(Gradient& gradient, bool adds) {
  if (gradient.direct(adds)) return;
  const auto* from = reinterpret_cast<const float*>(gradient.scratch + gradient.made_offset);
  if (gradient.changes) {
    const bool last = gradient.order == nullptr && !adds;
    void* to = last ? static_cast<void*>(gradient.target) : gradient.scratch + gradient.plain_offset;
    gradient.change.bind(from, to, gradient.scratch);
    gradient.change.run();
    if (last) return;
    from = static_cast<const float*>(to);
  }
  if (gradient.order != nullptr) {
    scatter_columns(from, *gradient.order, gradient.elements / gradient.order->size(), adds, gradient.target);
  } else {
    kernels().add(gradient.target, from, gradient.target, gradient.elements);
  }
}

}  // namespace paceline::tensor::cpu
