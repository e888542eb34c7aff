#pragma once

// Which rows are pulled most: counters of the rows seen, and when there are kCounters of them all lose the
// median count, and who has none left goes (frequent items after Misra and Gries 1982, with the purge of
// Anderson et al. 2017). So a count is never too large, and too small by at most error(), which is at most
// 2 / kCounters of all pulls; only rows are told whose count is above it. After kExact pulls only every
// kSample-th counts, kSample times: counts are estimates then, at a tenth of the cost.
//
// Pure. One thread. Memory is taken once, 0.4 MiB; a purge takes some 0.2 ms and comes at most once in
// kCounters / 2 counted pulls.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/pserver/sparse/table_spec.h"

namespace paceline::pserver::sparse {

class HotRows {
 public:
  struct Row {
    RowId id = 0;
    std::int64_t pulls = 0;
    bool operator==(const Row&) const = default;
  };

  HotRows();

  void count(std::span<const RowId> ids);
  // The hottest first, at most `most`; those of equal counts by id.
  std::vector<Row> hottest(std::size_t most) const;
  std::int64_t error() const { return error_; }

  static constexpr std::size_t kCounters = std::size_t{1} << 13;
  static constexpr std::uint64_t kExact = std::uint64_t{1} << 16;
  static constexpr std::size_t kSample = 17;

 private:
  Row& slot_of(RowId id);  // its own, or the empty one (no pulls) that is to be its
  void add(RowId id, std::int64_t pulls);
  void purge();

  std::vector<Row> slots_;            // open addressing, linear probing; half of them are empty
  std::vector<Row> kept_;             // of a purge
  std::vector<std::int64_t> counts_;  // the same
  std::size_t used_ = 0;
  std::int64_t error_ = 0;
  std::uint64_t counted_ = 0;
  std::size_t skip_ = 0;  // pulls until the next sample
};

}  // namespace paceline::pserver::sparse
