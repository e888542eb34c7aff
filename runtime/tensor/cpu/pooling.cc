// Max pooling in whatever layout its input has: the loops are pool.cc's.

#include <optional>

#include "runtime/tensor/cpu/function_operator.h"
#include "runtime/tensor/cpu/operators.h"
#include "runtime/tensor/cpu/pool.h"

namespace paceline::tensor::cpu {

namespace {

using Addresses = Operator::Addresses;

// How a {rows, channels, height, width} tensor's channels lie.
struct ChannelOrder {
  std::size_t outer = 0;
  std::size_t inner = 0;
  dnnl::memory::format_tag tag = dnnl::memory::format_tag::undef;
};

std::optional<ChannelOrder> channel_order(const Layout& layout) {
  using Tag = dnnl::memory::format_tag;
  const auto dims = layout.dims();
  const auto rows = static_cast<std::size_t>(dims[0]);
  const auto channels = static_cast<std::size_t>(dims[1]);
  const auto is = [&](Tag tag) { return layout == Layout(dims, layout.data_type(), tag); };
  if (is(Tag::nchw)) return ChannelOrder{rows * channels, 1, Tag::nchw};
  if (is(Tag::nhwc)) return ChannelOrder{rows, channels, Tag::nhwc};
  if (channels % 16 == 0 && is(Tag::nChw16c)) return ChannelOrder{rows * channels / 16, 16, Tag::nChw16c};
  if (channels % 8 == 0 && is(Tag::nChw8c)) return ChannelOrder{rows * channels / 8, 8, Tag::nChw8c};
  return std::nullopt;
}

PoolShape pool_shape(const ChannelOrder& order, const Dims& x, const Dims& y, const Attributes& attributes) {
  PoolShape shape;
  shape.outer = order.outer;
  shape.inner = order.inner;
  shape.height = static_cast<std::size_t>(x[2]);
  shape.width = static_cast<std::size_t>(x[3]);
  shape.out_height = static_cast<std::size_t>(y[2]);
  shape.out_width = static_cast<std::size_t>(y[3]);
  shape.window = static_cast<std::size_t>(attributes.window);
  shape.stride = static_cast<std::size_t>(attributes.stride);
  return shape;
}

}  // namespace

absl::StatusOr<Lowered> make_pool(CpuLowering& lowering, const Operation& operation) {
  const TensorId x = operation.inputs[0];
  const TensorId y = operation.outputs[0];
  const Dims& dims = lowering.tensor(x).dims;
  const bool known = channel_order(lowering.layout(x)).has_value();
  const Layout layout = known ? lowering.layout(x) : plain_layout(dims);
  const ChannelOrder order = *channel_order(layout);
  lowering.set_layout(y, Layout(lowering.tensor(y).dims, dnnl::memory::data_type::f32, order.tag));
  PoolShape shape = pool_shape(order, dims, lowering.tensor(y).dims, operation.attributes);
  shape.relu = operation.relu;
  const bool training = operation.outputs.size() > 1;
  auto body = [=](const Addresses& a, const RunContext&) {
    max_pool(shape, in(a, 0), out(a, 0), training ? static_cast<std::uint8_t*>(a.outputs[1]) : nullptr);
  };
  return Lowered{std::make_unique<FunctionOperator>(Operator::Needs{}, body), {Wanted{false, layout, false}}};
}

// g, places[, y] -> dx; places lie as y does.
absl::StatusOr<Lowered> make_pool_backward(CpuLowering& lowering, const Operation& operation) {
  const TensorId dx = operation.outputs[0];
  const TensorId g = operation.inputs[0];
  const Dims& dims = lowering.tensor(dx).dims;
  const Layout own = lowering.layout(dx);
  const bool known = channel_order(own).has_value();
  const ChannelOrder order = *channel_order(known ? own : plain_layout(dims));
  lowering.set_layout(dx, known ? own : plain_layout(dims));
  const Layout y_layout(lowering.tensor(g).dims, dnnl::memory::data_type::f32, order.tag);
  const PoolShape shape = pool_shape(order, dims, lowering.tensor(g).dims, operation.attributes);
  const bool masked = operation.inputs.size() > 2;
  auto body = [=](const Addresses& a, const RunContext&) {
    max_pool_backward(shape, in(a, 0), static_cast<const std::uint8_t*>(a.inputs[1]),
                      masked ? in(a, 2) : nullptr, out(a, 0));
  };
  std::vector<Wanted> wanted{Wanted{false, y_layout, false}, Wanted{}};
  if (masked) wanted.push_back(Wanted{false, y_layout, false});
  return Lowered{std::make_unique<FunctionOperator>(Operator::Needs{}, body), std::move(wanted)};
}

}  // namespace paceline::tensor::cpu
