// Fully connected layers: oneDNN's inner product on weights {out, in}, which one packed form serves forward
// and backward. An input whose whole sample is the product's operand keeps its layout, so that nothing is
// moved between the last pooling and the first fully connected layer: the weights are packed to suit it
// instead. Where a program that only evaluates has one position, each weight is read once: they stay
// row-major, which is as fast, and in fp32 takes no memory for another form.

#include "runtime/tensor/cpu/dnnl_operator.h"
#include "runtime/tensor/cpu/operators.h"

namespace paceline::tensor::cpu {

namespace {

using dnnl::memory;

struct Shapes {
  Layout x;           // {positions, in}, fp32
  Layout weight;      // {out, in}
  Layout any_weight;  // in the operands' type
  Layout y;           // {positions, out}
  Layout bias;
  ColumnOrder order;  // of the weight; null: as it is
};

// REQUIRES: x has a layout.
Shapes shapes_of(const CpuLowering& lowering, TensorId x, const Dims& weight) {
  const Dims& dims = lowering.tensor(x).dims;
  Shapes shapes;
  if (dims.size() == 4 && dims.back() != weight[1]) shapes.order = column_order(lowering.layout(x));
  shapes.x = plain_layout({element_count(dims) / weight[1], weight[1]});
  shapes.weight = plain_layout(weight);
  shapes.y = plain_layout({shapes.x.dims()[0], weight[0]});
  shapes.bias = plain_layout({weight[0]});
  const bool as_it_lies = !lowering.training() && shapes.order == nullptr && shapes.x.dims()[0] == 1;
  shapes.any_weight =
      Layout(weight, lowering.operand_type(), as_it_lies ? memory::format_tag::ab : memory::format_tag::any);
  return shapes;
}

// What the input's tensor has to look like: as it is where the weight's columns follow it, else row-major.
Layout wanted_x(const CpuLowering& lowering, TensorId x, const Shapes& shapes) {
  const Layout& own = lowering.layout(x);
  return with_type(shapes.order != nullptr ? own : plain_layout(own.dims()), lowering.operand_type());
}

Layout wanted_g(const CpuLowering& lowering, TensorId g) {
  return plain_layout(lowering.tensor(g).dims, lowering.operand_type());
}

dnnl::inner_product_forward::primitive_desc forward_description(const CpuLowering& lowering,
                                                                const Shapes& shapes, bool bias) {
  const Layout x = with_type(shapes.x, lowering.operand_type());
  using Forward = dnnl::inner_product_forward;
  const auto kind = dnnl::prop_kind::forward_training;
  const auto description = bias ? Forward::desc(kind, x, shapes.any_weight, shapes.bias, shapes.y)
                                : Forward::desc(kind, x, shapes.any_weight, shapes.y);
  return {description, user_scratchpad(), lowering.context().engine};
}

}  // namespace

absl::StatusOr<Lowered> make_linear(CpuLowering& lowering, const Operation& operation) {
  Lowered lowered;
  const TensorId x = operation.inputs[0];
  const TensorId weight = operation.inputs[1];
  const bool bias = operation.inputs.size() > 2;
  const auto status = dnnl_guard([&] {
    const Shapes shapes = shapes_of(lowering, x, lowering.tensor(weight).dims);
    const auto description = forward_description(lowering, shapes, bias);
    auto op = std::make_unique<DnnlOperator>(lowering.context(), dnnl::inner_product_forward(description));
    op->input(DNNL_ARG_SRC, 0, description.src_desc());
    op->weight(DNNL_ARG_WEIGHTS, 1, description.weights_desc(),
               lowering.packed(weight, shapes.weight, description.weights_desc(), shapes.order));
    if (bias) op->input(DNNL_ARG_BIAS, 2, description.bias_desc());
    op->output(DNNL_ARG_DST, 0, description.dst_desc());
    op->scratchpad(description.scratchpad_desc());
    if (operation.relu) op->relu(lowering.elements(operation.outputs[0]));
    lowered.op = std::move(op);
    lowered.wanted = {lowering.operand(wanted_x(lowering, x, shapes))};
    lowering.set_layout(operation.outputs[0], plain_layout(lowering.tensor(operation.outputs[0]).dims));
  });
  if (!status.ok()) return status;
  return lowered;
}

absl::StatusOr<Lowered> make_linear_backward_data(CpuLowering& lowering, const Operation& operation) {
  Lowered lowered;
  const TensorId g = operation.inputs[0];
  const TensorId weight = operation.inputs[1];
  const TensorId dx = operation.outputs[0];
  const auto status = dnnl_guard([&] {
    const Shapes shapes = shapes_of(lowering, dx, lowering.tensor(weight).dims);
    const auto type = lowering.operand_type();
    const dnnl::inner_product_backward_data::primitive_desc description(
        dnnl::inner_product_backward_data::desc(shapes.x, shapes.any_weight, with_type(shapes.y, type)),
        user_scratchpad(), lowering.context().engine, forward_description(lowering, shapes, false));
    auto op =
        std::make_unique<DnnlOperator>(lowering.context(), dnnl::inner_product_backward_data(description));
    op->input(DNNL_ARG_DIFF_DST, 0, description.diff_dst_desc());
    op->weight(DNNL_ARG_WEIGHTS, 1, description.weights_desc(),
               lowering.packed(weight, shapes.weight, description.weights_desc(), shapes.order));
    op->output(DNNL_ARG_DIFF_SRC, 0, description.diff_src_desc());
    op->scratchpad(description.scratchpad_desc());
    lowered.op = std::move(op);
    lowered.wanted = {lowering.operand(wanted_g(lowering, g))};
  });
  if (!status.ok()) return status;
  return lowered;
}

absl::StatusOr<Lowered> make_linear_backward_weights(CpuLowering& lowering, const Operation& operation) {
  Lowered lowered;
  const TensorId x = operation.inputs[0];
  const TensorId g = operation.inputs[1];
  const Tensor& dweight = lowering.tensor(operation.outputs[0]);
  const bool bias = operation.outputs.size() > 1;
  const auto status = dnnl_guard([&] {
    const Shapes shapes = shapes_of(lowering, x, dweight.dims);
    const auto type = lowering.operand_type();
    const Layout any = with_type(shapes.any_weight, kF32);
    const Layout src = with_type(shapes.x, type);
    const Layout dst = with_type(shapes.y, type);
    using Backward = dnnl::inner_product_backward_weights;
    const Backward::primitive_desc description(
        bias ? Backward::desc(src, any, shapes.bias, dst) : Backward::desc(src, any, dst), user_scratchpad(),
        lowering.context().engine, forward_description(lowering, shapes, bias));
    auto op = std::make_unique<DnnlOperator>(lowering.context(), Backward(description));
    op->input(DNNL_ARG_SRC, 0, description.src_desc());
    op->input(DNNL_ARG_DIFF_DST, 1, description.diff_dst_desc());
    op->gradient(DNNL_ARG_DIFF_WEIGHTS, 0, description.diff_weights_desc(), shapes.weight, dweight.adds,
                 shapes.order);
    if (bias) {
      op->gradient(DNNL_ARG_DIFF_BIAS, 1, description.diff_bias_desc(), shapes.bias,
                   lowering.tensor(operation.outputs[1]).adds);
    }
    op->scratchpad(description.scratchpad_desc());
    lowered.op = std::move(op);
    lowered.wanted = {lowering.operand(wanted_x(lowering, x, shapes)),
                      lowering.operand(wanted_g(lowering, g))};
  });
  if (!status.ok()) return status;
  return lowered;
}

}  // namespace paceline::tensor::cpu
