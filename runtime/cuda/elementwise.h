#pragma once

// Functions of single elements on the GPU, in fp32 or bf16 (read as fp32, rounded once to what is written).
//
// Addresses are of the GPU and 16-byte aligned; n counts elements, and zero does nothing. Outputs may be
// inputs where a line says "in place". All are added to the stream and return at once; deterministic. As on
// the CPU (tensor/cpu/kernels/kernels.h), a NaN reaches every output that depends on it. Thread-safe but for
// the stream.

#include <array>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/dtype.h"
#include "runtime/cuda/kernel_pair.h"
#include "runtime/cuda/kernels/elementwise_params.h"
#include "runtime/cuda/module.h"

namespace paceline::cuda {

class Elementwise {
 public:
  enum class Function : std::uint8_t { kRelu, kGelu, kTanh, kSigmoid };

  static absl::StatusOr<Elementwise> load(std::shared_ptr<const Context> context);

  // The type of all addresses of a call: INVALID_ARGUMENT but for kF32 and kBF16.
  // y = f(x), in place
  absl::Status apply(Stream& stream, Function function, DType type, const void* x, void* y,
                     std::size_t n) const;
  // dx from dy and, for kGelu, the input, else the output; dx may be either
  absl::Status backward(Stream& stream, Function function, DType type, const void* saved, const void* dy,
                        void* dx, std::size_t n) const;
  // y = factor * x, in place
  absl::Status scale(Stream& stream, DType type, float factor, const void* x, void* y, std::size_t n) const;
  // z = x + y and z = x * y, in place
  absl::Status add(Stream& stream, DType type, const void* x, const void* y, void* z, std::size_t n) const;
  absl::Status multiply(Stream& stream, DType type, const void* x, const void* y, void* z,
                        std::size_t n) const;
  // z = x + row and z = gelu(x + row), where `row` has `period` elements and is added to each period of x; in
  // place. REQUIRES: n is a multiple of period, and at most kMostPeriodic.
  absl::Status add_row(Stream& stream, DType type, const void* x, const void* row, void* z, std::size_t n,
                       std::size_t period) const;
  absl::Status bias_gelu(Stream& stream, DType type, const void* x, const void* row, void* z, std::size_t n,
                         std::size_t period) const;

 private:
  struct Kernels {
    std::array<KernelPair<UnaryParams>, 4> forward;  // by Function
    std::array<KernelPair<BinaryParams>, 4> backward;
    KernelPair<UnaryParams> scale;
    KernelPair<BinaryParams> add, multiply;
    KernelPair<PeriodicParams> add_row, add_row_any, bias_gelu, bias_gelu_any;
  };

  Elementwise(Module module, const Kernels& kernels) : module_(std::move(module)), kernels_(kernels) {}
  absl::Status periodic(Stream& stream, DType type, const KernelPair<PeriodicParams>& wide,
                        const KernelPair<PeriodicParams>& any, const void* x, const void* row, void* z,
                        std::size_t n, std::size_t period) const;

  Module module_;
  Kernels kernels_;
};

}  // namespace paceline::cuda
