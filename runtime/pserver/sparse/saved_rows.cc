#include "runtime/pserver/sparse/saved_rows.h"

#include <algorithm>

namespace paceline::pserver::sparse {

void SavedRows::clear() {
  ids.clear();
  last.clear();
  uses.clear();
  steps.clear();
  floats.clear();
}

void SavedRows::reserve(std::size_t rows, std::size_t row_floats) {
  ids.reserve(rows);
  last.reserve(rows);
  uses.reserve(rows);
  steps.reserve(rows);
  floats.reserve(rows * row_floats);
}

void SavedRows::append(RowId id, std::int64_t last_use, std::uint32_t use_count, std::uint32_t step_count,
                       std::span<const float> row) {
  ids.push_back(id);
  last.push_back(last_use);
  uses.push_back(use_count);
  steps.push_back(step_count);
  floats.insert(floats.end(), row.begin(), row.end());
}

void SavedRows::append(const SavedRows& from, std::size_t k, std::size_t count) {
  const std::size_t width = from.floats.size() / from.size();
  append(from.ids[k], from.last[k], from.uses[k], from.steps[k], {from.floats.data() + k * width, count});
}

KeptRows::KeptRows(std::size_t row_floats)
    : row_floats_(row_floats),
      block_rows_(
          std::max<std::size_t>(1, kBlockBytes / (SavedRows::kNoteBytes + row_floats * sizeof(float)))),
      block_bytes_(block_rows_ * (SavedRows::kNoteBytes + row_floats * sizeof(float))) {}

void KeptRows::append(RowId id, std::int64_t last_use, std::uint32_t use_count, std::uint32_t step_count,
                      std::span<const float> row) {
  if (blocks_.empty() || blocks_.back().size() == block_rows_) {
    blocks_.emplace_back().reserve(block_rows_, row_floats_);
  }
  blocks_.back().append(id, last_use, use_count, step_count, row);
}

void KeptRows::take(std::size_t most, SavedRows& to) {
  while (!blocks_.empty() && to.size() < most) {
    const SavedRows& first = blocks_.front();
    for (; taken_ < first.size() && to.size() < most; ++taken_) to.append(first, taken_, row_floats_);
    if (taken_ < first.size()) return;
    blocks_.pop_front();
    taken_ = 0;
  }
}

void KeptRows::clear() {
  blocks_ = {};
  taken_ = 0;
}

}  // namespace paceline::pserver::sparse
