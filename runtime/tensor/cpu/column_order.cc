#include "runtime/tensor/cpu/column_order.h"

#include "base/check.h"

namespace paceline::tensor::cpu {

namespace {

// Where element `at` of the first sample lies: by outer strides, then inside the block.
std::size_t place(const dnnl_memory_desc_t& layout, std::int64_t at[4]) {
  const auto& blocking = layout.format_desc.blocking;
  std::int64_t inner = 0;
  std::int64_t inner_size = 1;
  for (int b = blocking.inner_nblks - 1; b >= 0; --b) {
    const auto dimension = blocking.inner_idxs[b];
    inner += at[dimension] % blocking.inner_blks[b] * inner_size;
    inner_size *= blocking.inner_blks[b];
    at[dimension] /= blocking.inner_blks[b];
  }
  std::int64_t outer = 0;
  for (int d = 1; d < 4; ++d) outer += at[d] * blocking.strides[d];
  return static_cast<std::size_t>(outer + inner);
}

}  // namespace

ColumnOrder column_order(const Layout& layout) {
  PL_CHECK(layout.dims().size() == 4 && !is_padded(layout),
           "only images without padding have a column order");
  if (is_plain(layout)) return nullptr;
  const auto dims = layout.dims();
  PL_CHECK(layout.data.format_desc.blocking.strides[0] == dims[1] * dims[2] * dims[3],
           "samples lie one after the other");
  auto order =
      std::make_shared<std::vector<std::uint32_t>>(static_cast<std::size_t>(dims[1] * dims[2] * dims[3]));
  std::uint32_t plain = 0;
  for (std::int64_t c = 0; c < dims[1]; ++c) {
    for (std::int64_t i = 0; i < dims[2]; ++i) {
      for (std::int64_t j = 0; j < dims[3]; ++j) {
        std::int64_t at[4] = {0, c, i, j};
        (*order)[place(layout.data, at)] = plain++;
      }
    }
  }
  return order;
}

void gather_columns(const float* from, const std::vector<std::uint32_t>& order, std::size_t rows, float* to) {
  const std::size_t columns = order.size();
  for (std::size_t r = 0; r < rows; ++r, from += columns, to += columns) {
    for (std::size_t k = 0; k < columns; ++k) to[k] = from[order[k]];
  }
}

void scatter_columns(const float* from, const std::vector<std::uint32_t>& order, std::size_t rows, bool adds,
                     float* to) {
  const std::size_t columns = order.size();
  for (std::size_t r = 0; r < rows; ++r, from += columns, to += columns) {
    for (std::size_t k = 0; k < columns; ++k) to[order[k]] = adds ? to[order[k]] + from[k] : from[k];
  }
}

}  // namespace paceline::tensor::cpu
