#pragma once

// Rows of a sparse table with all that is kept of them, in columns: how they go into checkpoints and out of
// them. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "runtime/pserver/sparse/table_spec.h"

namespace paceline::pserver::sparse {

struct SavedRows {
  static constexpr std::size_t kNoteBytes = 24;  // of a row, beside its floats

  std::vector<RowId> ids;
  std::vector<std::int64_t> last;
  std::vector<std::uint32_t> uses, steps;
  std::vector<float> floats;  // weights, then state, of each row in turn

  std::size_t size() const { return ids.size(); }
  void clear();
  void reserve(std::size_t rows, std::size_t row_floats);
  void append(RowId id, std::int64_t last_use, std::uint32_t use_count, std::uint32_t step_count,
              std::span<const float> row);
  // Row k of another, with the first `count` of its floats.
  void append(const SavedRows& from, std::size_t k, std::size_t count);
};

// Rows that wait, first in, first out, in blocks that go as soon as their last row has gone: memory is that
// of what waits, and of one block at most, however many have been through.
class KeptRows {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t{256} << 10;

  explicit KeptRows(std::size_t row_floats);

  bool empty() const { return blocks_.empty(); }
  std::uint64_t bytes() const { return blocks_.size() * block_bytes_; }  // whole blocks
  void append(RowId id, std::int64_t last_use, std::uint32_t use_count, std::uint32_t step_count,
              std::span<const float> row);
  // The next ones, until `to` has `most` or none are left.
  void take(std::size_t most, SavedRows& to);
  void clear();

 private:
  const std::size_t row_floats_, block_rows_;
  const std::uint64_t block_bytes_;
  std::deque<SavedRows> blocks_;
  std::size_t taken_ = 0;  // rows of the first block
};

}  // namespace paceline::pserver::sparse
