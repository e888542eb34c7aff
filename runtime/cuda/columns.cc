#include "runtime/cuda/columns.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

namespace {

constexpr std::size_t kRowsOfPart = 128;
constexpr std::size_t kMostColumnParts = 128;

std::uint32_t pieces(std::size_t n, std::size_t each) {
  return static_cast<std::uint32_t>((n + each - 1) / each);
}

}  // namespace

std::uint32_t column_parts(std::size_t rows) {
  return pieces(std::clamp<std::size_t>(rows, 1, kRowsOfPart * kMostColumnParts), kRowsOfPart);
}

LaunchShape column_shape(DType type, std::size_t rows, std::size_t columns) {
  const std::size_t width = whole_vectors(type, columns) ? wide_elements(type) : 1;
  return {.columns = pieces(columns, width * kColumnLanes),
          .rows = column_parts(rows),
          .threads = kColumnLanes * kColumnRows};
}

absl::StatusOr<Columns> Columns::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), reduce_image()));
  PL_LOAD_PAIR(const auto wide, module, ColumnSumsParams, column_sums);
  PL_LOAD_PAIR(const auto any, module, ColumnSumsParams, column_sums_any);
  PL_ASSIGN_OR_RETURN(const auto join, module.kernel<JoinColumnsParams>("join_columns"));
  return Columns(std::move(module), wide, any, join);
}

absl::Status Columns::sums(Stream& stream, DType type, const void* x, float* sums, bool accumulate,
                           float* scratch, std::size_t rows, std::size_t columns) const {
  if (columns == 0) return absl::OkStatus();
  const ColumnSumsParams params{.x = x,
                                .partials = scratch,
                                .rows = static_cast<std::uint32_t>(rows),
                                .columns = static_cast<std::uint32_t>(columns)};
  PL_RETURN_IF_ERROR((whole_vectors(type, columns) ? wide_ : any_)
                         .launch(stream, type, column_shape(type, rows, columns), params));
  return join(stream, scratch, sums, nullptr, accumulate, column_parts(rows), columns);
}

absl::Status Columns::join(Stream& stream, const float* partials, float* first, float* second,
                           bool accumulate, std::size_t parts, std::size_t columns) const {
  return join_.launch(stream,
                      {.columns = pieces(columns, kJoinLanes),
                       .rows = second == nullptr ? 1U : 2U,
                       .threads = kJoinLanes * kJoinRows},
                      {.partials = partials,
                       .out = {first, second},
                       .parts = static_cast<std::uint32_t>(parts),
                       .columns = static_cast<std::uint32_t>(columns),
                       .accumulate = accumulate});
}

}  // namespace paceline::cuda
