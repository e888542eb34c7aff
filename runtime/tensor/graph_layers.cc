// How parameters begin, and layers: parameters with their operator.

#include <cmath>

#include "base/status.h"
#include "runtime/tensor/graph.h"

namespace paceline::tensor {

Init Init::he(std::int64_t fan_in) {
  return normal(std::sqrt(2.0F / static_cast<float>(fan_in)));
}

Init Init::xavier(std::int64_t fan_in, std::int64_t fan_out) {
  return uniform(std::sqrt(6.0F / static_cast<float>(fan_in + fan_out)));
}

Value GraphBuilder::dense(const std::string& name, Value x, std::int64_t out) {
  if (!usable(name, {x})) return {};
  return dense(name, x, out, Init::he(dims(x).back()));
}

Value GraphBuilder::dense(const std::string& name, Value x, std::int64_t out, Init init) {
  if (!usable(name, {x})) return {};
  const Value weight = parameter(name + ".weight", {out, dims(x).back()}, init);
  const Value bias = parameter(name + ".bias", {out}, Init::constant(0), false);
  if (!status_.ok()) return {};
  return linear(x, weight, bias);
}

Value GraphBuilder::conv(const std::string& name, Value x, std::int64_t filters, std::int64_t kernel,
                         std::int64_t stride, std::int64_t padding) {
  if (!usable(name, {x})) return {};
  const Dims& in = dims(x);
  if (in.size() != 3)
    return refuse(name, str_cat("conv2d: x must be {channels, height, width}, not ", dims_text(in)));
  const Value weight =
      parameter(name + ".weight", {filters, in[0], kernel, kernel}, Init::he(in[0] * kernel * kernel));
  const Value bias = parameter(name + ".bias", {filters}, Init::constant(0), false);
  if (!status_.ok()) return {};
  return conv2d(x, weight, bias, stride, padding);
}

}  // namespace paceline::tensor
