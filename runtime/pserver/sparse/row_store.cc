#include "runtime/pserver/sparse/row_store.h"

#include "base/status.h"
#include "runtime/pserver/sparse/row_index.h"

namespace paceline::pserver::sparse {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{16} << 20;  // about, at most

}  // namespace

RowStore::RowStore(std::size_t row_floats) : row_floats_(row_floats) {
  const std::size_t bytes = sizeof(RowNote) + row_floats * sizeof(float);
  while ((bytes << (shift_ + 1)) <= kBlockBytes) ++shift_;
  mask_ = (std::uint32_t{1} << shift_) - 1;
  floats_begin_ = ((sizeof(RowNote) << shift_) + 63) / 64 * 64;
}

absl::StatusOr<std::uint32_t> RowStore::take() {
  if (!free_.empty()) {
    const std::uint32_t row = free_.back();
    free_.pop_back();
    return row;
  }
  if (end_ == RowIndex::kMaxRow) {
    return absl::ResourceExhaustedError(
        str_cat("a server's part of a table has at most ", RowIndex::kMaxRow, " rows: take more servers"));
  }
  if ((end_ >> shift_) == blocks_.size()) {
    PL_ASSIGN_OR_RETURN(HugeBlock block,
                        HugeBlock::create(floats_begin_ + ((row_floats_ * sizeof(float)) << shift_)));
    blocks_.push_back(std::move(block));
  }
  const std::uint32_t row = end_++;
  note(row) = RowNote();
  return row;
}

void RowStore::give_back(std::uint32_t row) {
  note(row) = RowNote();
  free_.push_back(row);
}

std::uint64_t RowStore::bytes() const {
  return end_ * (sizeof(RowNote) + row_floats_ * sizeof(float)) + free_.capacity() * sizeof(std::uint32_t);
}

}  // namespace paceline::pserver::sparse
