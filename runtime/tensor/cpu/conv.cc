// Convolutions by oneDNN's direct algorithm, in the layouts that it asks for. The forward description is made
// again for each backward operation: from the input's layout alone, so that all three agree.

#include <cstring>
#include <string_view>

#include "runtime/tensor/cpu/dnnl_operator.h"
#include "runtime/tensor/cpu/operators.h"

namespace paceline::tensor::cpu {

namespace {

using dnnl::memory;
using Forward = dnnl::convolution_forward;

struct Geometry {
  memory::dims strides;
  memory::dims padding;      // top and left
  memory::dims end_padding;  // bottom and right: less where the stride leaves a rest
};

Geometry geometry_of(const Dims& x, const Dims& weight, const Dims& y, const Attributes& attributes) {
  const std::int64_t s = attributes.stride;
  const std::int64_t p = attributes.padding;
  const auto end = [&](std::size_t d) { return (y[d] - 1) * s + weight[d] - x[d] - p; };
  return {{s, s}, {p, p}, {end(2), end(3)}};
}

struct Convolution {
  Geometry geometry;
  Layout weight;  // row-major
  Layout bias;
  memory::data_type type;  // of the operands
  Forward::primitive_desc forward;
};

Forward::primitive_desc describe(const CpuLowering& lowering, const Convolution& c, const Layout& x,
                                 const Layout& y, bool bias) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const Layout weight(c.weight.dims(), c.type, memory::format_tag::any);
  const auto& g = c.geometry;
  const auto description =
      bias ? Forward::desc(kind, algorithm, x, weight, c.bias, y, g.strides, g.padding, g.end_padding)
           : Forward::desc(kind, algorithm, x, weight, y, g.strides, g.padding, g.end_padding);
  return {description, user_scratchpad(), lowering.context().engine};
}

// oneDNN's own choice; without blocks where they would hold channels that nobody has.
Forward::primitive_desc choose(const CpuLowering& lowering, const Convolution& c, TensorId x, const Dims& y,
                               bool bias) {
  const Dims& x_dims = lowering.tensor(x).dims;
  const auto any = memory::format_tag::any;
  const auto nhwc = memory::format_tag::nhwc;
  auto chosen = describe(lowering, c, Layout(x_dims, c.type, any), Layout(y, kF32, any), bias);
  if (!is_padded(chosen.src_desc()) && !is_padded(chosen.dst_desc())) return chosen;
  return describe(lowering, c, Layout(x_dims, c.type, nhwc), Layout(y, kF32, nhwc), bias);
}

bool is_reference(const char* implementation) {
  return std::string_view(implementation).find("ref") != std::string_view::npos;
}

Convolution convolution_of(const CpuLowering& lowering, TensorId x, const Dims& weight, const Dims& y,
                           const Operation& operation, bool bias) {
  Convolution c{geometry_of(lowering.tensor(x).dims, weight, y, operation.attributes),
                plain_layout(weight),
                plain_layout({weight[0]}),
                lowering.operand_type(),
                {}};
  c.forward = choose(lowering, c, x, y, bias);
  if (c.type != kF32 && is_reference(c.forward.impl_info_str())) {
    c.type = kF32;
    c.forward = choose(lowering, c, x, y, bias);
  }
  return c;
}

}  // namespace

absl::StatusOr<Lowered> make_conv(CpuLowering& lowering, const Operation& operation) {
  Lowered lowered;
  const TensorId weight = operation.inputs[1];
  const TensorId y = operation.outputs[0];
  const bool bias = operation.inputs.size() > 2;
  const auto status = dnnl_guard([&] {
    const Convolution c = convolution_of(lowering, operation.inputs[0], lowering.tensor(weight).dims,
                                         lowering.tensor(y).dims, operation, bias);
    auto op = std::make_unique<DnnlOperator>(lowering.context(), Forward(c.forward));
    op->input(DNNL_ARG_SRC, 0, c.forward.src_desc());
    op->weight(DNNL_ARG_WEIGHTS, 1, c.forward.weights_desc(),
               lowering.packed(weight, c.weight, c.forward.weights_desc()));
    if (bias) op->input(DNNL_ARG_BIAS, 2, c.forward.bias_desc());
    op->output(DNNL_ARG_DST, 0, c.forward.dst_desc());
    op->scratchpad(c.forward.scratchpad_desc());
    if (operation.relu) op->relu(lowering.elements(operation.outputs[0]));
    lowered.op = std::move(op);
    lowered.wanted = {lowering.operand(c.forward.src_desc())};
    lowering.set_layout(y, c.forward.dst_desc());
  });
  if (!status.ok()) return status;
  return lowered;
}

absl::StatusOr<Lowered> make_conv_backward_data(CpuLowering& lowering, const Operation& operation) {
  Lowered lowered;
  const TensorId g = operation.inputs[0];
  const TensorId weight = operation.inputs[1];
  const TensorId dx = operation.outputs[0];
  const auto status = dnnl_guard([&] {
    const Convolution c =
        convolution_of(lowering, dx, lowering.tensor(weight).dims, lowering.tensor(g).dims, operation, false);
    using Backward = dnnl::convolution_backward_data;
    const Backward::primitive_desc description(
        Backward::desc(dnnl::algorithm::convolution_direct, with_type(c.forward.src_desc(), kF32),
                       Layout(c.weight.dims(), c.type, memory::format_tag::any),
                       with_type(c.forward.dst_desc(), c.type), c.geometry.strides, c.geometry.padding,
                       c.geometry.end_padding),
        user_scratchpad(), lowering.context().engine, c.forward);
    auto op = std::make_unique<DnnlOperator>(lowering.context(), Backward(description));
    op->input(DNNL_ARG_DIFF_DST, 0, description.diff_dst_desc());
    op->weight(DNNL_ARG_WEIGHTS, 1, description.weights_desc(),
               lowering.packed(weight, c.weight, description.weights_desc()));
    op->output(DNNL_ARG_DIFF_SRC, 0, description.diff_src_desc());
    op->scratchpad(description.scratchpad_desc());
    lowered.op = std::move(op);
    lowered.wanted = {lowering.operand(description.diff_dst_desc())};
    lowering.set_layout(dx, description.diff_src_desc());
  });
  if (!status.ok()) return status;
  return lowered;
}

absl::StatusOr<Lowered> make_conv_backward_weights(CpuLowering& lowering, const Operation& operation) {
  Lowered lowered;
  const TensorId x = operation.inputs[0];
  const TensorId g = operation.inputs[1];
  const Tensor& dweight = lowering.tensor(operation.outputs[0]);
  const bool bias = operation.outputs.size() > 1;
  const auto status = dnnl_guard([&] {
    const Convolution c = convolution_of(lowering, x, dweight.dims, lowering.tensor(g).dims, operation, bias);
    using Backward = dnnl::convolution_backward_weights;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const Layout any(c.weight.dims(), kF32, memory::format_tag::any);
    const auto& geo = c.geometry;
    const auto describe = [&](const Layout& src, const Layout& dst) {
      return Backward::primitive_desc(
          bias ? Backward::desc(algorithm, src, any, c.bias, dst, geo.strides, geo.padding, geo.end_padding)
               : Backward::desc(algorithm, src, any, dst, geo.strides, geo.padding, geo.end_padding),
          user_scratchpad(), lowering.context().engine, c.forward);
    };
    auto description = describe(c.forward.src_desc(), with_type(c.forward.dst_desc(), c.type));
    // AVX2 has no kernel for one input channel beside blocked outputs; matrix products take plain ones.
    if (is_reference(description.impl_info_str())) {
      const auto plain = memory::format_tag::nchw;
      description = describe(Layout(c.forward.src_desc().dims(), c.type, plain),
                             Layout(c.forward.dst_desc().dims(), c.type, plain));
    }
    auto op = std::make_unique<DnnlOperator>(lowering.context(), Backward(description));
    op->input(DNNL_ARG_SRC, 0, description.src_desc());
    op->input(DNNL_ARG_DIFF_DST, 1, description.diff_dst_desc());
    op->gradient(DNNL_ARG_DIFF_WEIGHTS, 0, description.diff_weights_desc(), c.weight, dweight.adds);
    if (bias)
      op->gradient(DNNL_ARG_DIFF_BIAS, 1, description.diff_bias_desc(), c.bias,
                   lowering.tensor(operation.outputs[1]).adds);
    op->scratchpad(description.scratchpad_desc());
    lowered.op = std::move(op);
    lowered.wanted = {lowering.operand(description.src_desc()),
                      lowering.operand(description.diff_dst_desc())};
  });
  if (!status.ok()) return status;
  return lowered;
}

}  // namespace paceline::tensor::cpu
