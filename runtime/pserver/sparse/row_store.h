#pragma once

// Rows by number, in blocks of some ten MiB that never move: growth takes one more block. A block holds the
// notes on its rows and then their floats. What is given back is taken first. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/pserver/sparse/fetch_ahead.h"
#include "runtime/pserver/sparse/huge_block.h"
#include "runtime/pserver/sparse/table_spec.h"

namespace paceline::pserver::sparse {

struct RowNote {
  static constexpr std::int64_t kFree = -1;
  RowId id = 0;
  std::int64_t last = kFree;  // update of the table that touched it last
  std::uint32_t uses = 0;     // gradients, fading (RowBound)
  std::uint32_t steps = 0;    // optimiser steps
  std::uint32_t mark = 0;     // of the update under way: its place among the touched rows
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RowNote) == 32);

class RowStore {
 public:
  explicit RowStore(std::size_t row_floats);

  // A number whose note says kFree and whose floats are anything. RESOURCE_EXHAUSTED.
  absl::StatusOr<std::uint32_t> take();
  void give_back(std::uint32_t row);

  RowNote& note(std::uint32_t row) const {
    return reinterpret_cast<RowNote*>(blocks_[row >> shift_].data())[row & mask_];
  }
  float* floats(std::uint32_t row) const {
    return reinterpret_cast<float*>(blocks_[row >> shift_].data() + floats_begin_) +
           (row & mask_) * row_floats_;
  }
  // The note, and so many of the floats.
  void fetch(std::uint32_t row, std::size_t floats) const {
    fetch_ahead(&note(row));
    const auto* const begin = reinterpret_cast<const char*>(this->floats(row));
    for (std::size_t at = 0; at < floats * sizeof(float); at += kCacheLine) fetch_ahead(begin + at);
  }

  // All numbers that were ever taken are below it.
  std::uint32_t end() const { return end_; }
  std::uint64_t rows() const { return end_ - free_.size(); }
  // Of the rows taken so far, whether they are given back or not.
  std::uint64_t bytes() const;

 private:
  const std::size_t row_floats_;
  int shift_ = 0;  // rows of a block, as a power of two
  std::uint32_t mask_ = 0;
  std::size_t floats_begin_ = 0;
  std::vector<HugeBlock> blocks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t end_ = 0;
};

}  // namespace paceline::pserver::sparse
