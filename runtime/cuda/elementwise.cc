#include "runtime/cuda/elementwise.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

namespace {

std::size_t index(Elementwise::Function function) {
  return static_cast<std::size_t>(function);
}

LaunchShape shape_of(const Stream& stream, DType type, std::size_t n) {
  return strided_shape(n / wide_elements(type) + 1, kElementwiseThreads,
                       stream.context().device().multiprocessors);
}

void check_periods(std::size_t n, std::size_t period) {
  PL_CHECK(period > 0 && n % period == 0 && n <= kMostPeriodic, "whole periods, which 32 bits count");
}

LaunchShape periodic_shape(const Stream& stream, DType type, std::size_t n, std::size_t period) {
  return strided_shape(whole_vectors(type, period) ? n / wide_elements(type) : n, kElementwiseThreads,
                       stream.context().device().multiprocessors);
}

}  // namespace

absl::StatusOr<Elementwise> Elementwise::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), elementwise_image()));
  PL_LOAD_PAIR(auto relu, module, UnaryParams, relu);
  PL_LOAD_PAIR(auto gelu, module, UnaryParams, gelu);
  PL_LOAD_PAIR(auto tanh, module, UnaryParams, tanh);
  PL_LOAD_PAIR(auto sigmoid, module, UnaryParams, sigmoid);
  PL_LOAD_PAIR(auto relu_backward, module, BinaryParams, relu_backward);
  PL_LOAD_PAIR(auto gelu_backward, module, BinaryParams, gelu_backward);
  PL_LOAD_PAIR(auto tanh_backward, module, BinaryParams, tanh_backward);
  PL_LOAD_PAIR(auto sigmoid_backward, module, BinaryParams, sigmoid_backward);
  PL_LOAD_PAIR(auto scale, module, UnaryParams, scale);
  PL_LOAD_PAIR(auto add, module, BinaryParams, add);
  PL_LOAD_PAIR(auto multiply, module, BinaryParams, multiply);
  PL_LOAD_PAIR(auto add_row, module, PeriodicParams, add_row);
  PL_LOAD_PAIR(auto add_row_any, module, PeriodicParams, add_row_any);
  PL_LOAD_PAIR(auto bias_gelu, module, PeriodicParams, bias_gelu);
  PL_LOAD_PAIR(auto bias_gelu_any, module, PeriodicParams, bias_gelu_any);
  const Kernels kernels{.forward = {relu, gelu, tanh, sigmoid},
                        .backward = {relu_backward, gelu_backward, tanh_backward, sigmoid_backward},
                        .scale = scale,
                        .add = add,
                        .multiply = multiply,
                        .add_row = add_row,
                        .add_row_any = add_row_any,
                        .bias_gelu = bias_gelu,
                        .bias_gelu_any = bias_gelu_any};
  return Elementwise(std::move(module), kernels);
}

absl::Status Elementwise::apply(Stream& stream, Function function, DType type, const void* x, void* y,
                                std::size_t n) const {
  if (n == 0) return absl::OkStatus();
  return kernels_.forward[index(function)].launch(stream, type, shape_of(stream, type, n),
                                                  {.x = x, .y = y, .factor = 1, .n = n});
}

absl::Status Elementwise::backward(Stream& stream, Function function, DType type, const void* saved,
                                   const void* dy, void* dx, std::size_t n) const {
  if (n == 0) return absl::OkStatus();
  return kernels_.backward[index(function)].launch(stream, type, shape_of(stream, type, n),
                                                   {.x = saved, .y = dy, .z = dx, .n = n});
}

absl::Status Elementwise::scale(Stream& stream, DType type, float factor, const void* x, void* y,
                                std::size_t n) const {
  if (n == 0) return absl::OkStatus();
  return kernels_.scale.launch(stream, type, shape_of(stream, type, n),
                               {.x = x, .y = y, .factor = factor, .n = n});
}

absl::Status Elementwise::add(Stream& stream, DType type, const void* x, const void* y, void* z,
                              std::size_t n) const {
  if (n == 0) return absl::OkStatus();
  return kernels_.add.launch(stream, type, shape_of(stream, type, n), {.x = x, .y = y, .z = z, .n = n});
}

absl::Status Elementwise::multiply(Stream& stream, DType type, const void* x, const void* y, void* z,
                                   std::size_t n) const {
  if (n == 0) return absl::OkStatus();
  return kernels_.multiply.launch(stream, type, shape_of(stream, type, n), {.x = x, .y = y, .z = z, .n = n});
}

absl::Status Elementwise::periodic(Stream& stream, DType type, const KernelPair<PeriodicParams>& wide,
                                   const KernelPair<PeriodicParams>& any, const void* x, const void* row,
                                   void* z, std::size_t n, std::size_t period) const {
  check_periods(n, period);
  if (n == 0) return absl::OkStatus();
  const bool fits = whole_vectors(type, period);
  const LaunchShape shape = periodic_shape(stream, type, n, period);
  return (fits ? wide : any)
      .launch(stream, type, shape,
              {.x = x,
               .row = row,
               .z = z,
               .n = static_cast<std::uint32_t>(n),
               .period = static_cast<std::uint32_t>(period)});
}

absl::Status Elementwise::add_row(Stream& stream, DType type, const void* x, const void* row, void* z,
                                  std::size_t n, std::size_t period) const {
  return periodic(stream, type, kernels_.add_row, kernels_.add_row_any, x, row, z, n, period);
}

absl::Status Elementwise::bias_gelu(Stream& stream, DType type, const void* x, const void* row, void* z,
                                    std::size_t n, std::size_t period) const {
  return periodic(stream, type, kernels_.bias_gelu, kernels_.bias_gelu_any, x, row, z, n, period);
}

}  // namespace paceline::cuda
