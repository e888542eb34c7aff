#pragma once

// Sums over the rows of a matrix on the GPU: gradients of biases. In a fixed order, which depends on the
// sizes alone and not on the GPU: the same bits from run to run.
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. Thread-safe
// but for the stream and the scratch memory.

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/kernel_pair.h"
#include "runtime/cuda/kernels/reduce_params.h"

namespace paceline::cuda {

// Parts of the rows that are summed side by side: at most 128, of 128 rows or more.
std::uint32_t column_parts(std::size_t rows);
LaunchShape column_shape(DType type, std::size_t rows, std::size_t columns);

class Columns {
 public:
  static absl::StatusOr<Columns> load(std::shared_ptr<const Context> context);

  // sums[c] = sum over rows of x[r][c], or added to what is there. x of kF32 or kBF16, [rows, columns]; sums
  // fp32. `scratch` holds scratch_elements(). REQUIRES: rows and columns below 2^32; no rows make zeros.
  absl::Status sums(Stream& stream, DType type, const void* x, float* sums, bool accumulate, float* scratch,
                    std::size_t rows, std::size_t columns) const;
  static std::size_t scratch_elements(std::size_t rows, std::size_t columns) {
    return column_parts(rows) * columns;
  }

  // out[i][c] (+)= sum over parts of partials[part][i][c], in their order. `second` null: i is 0 alone, and
  // partials are [parts, columns].
  absl::Status join(Stream& stream, const float* partials, float* first, float* second, bool accumulate,
                    std::size_t parts, std::size_t columns) const;

 private:
  Columns(Module module, KernelPair<ColumnSumsParams> wide, KernelPair<ColumnSumsParams> any,
          Kernel<JoinColumnsParams> join)
      : module_(std::move(module)), wide_(wide), any_(any), join_(join) {}

  Module module_;
  KernelPair<ColumnSumsParams> wide_, any_;
  Kernel<JoinColumnsParams> join_;
};

}  // namespace paceline::cuda
