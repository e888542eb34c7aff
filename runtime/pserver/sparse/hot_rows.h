#pragma once

// Which rows are pulled most: the space-saving sketch (Metwally, Agrawal and El Abbadi 2005) with kCounters
// counters. A row that is pulled more often than total / kCounters has a counter; a count is too large by at
// most the smallest one. After kExact pulls only every kSample-th counts, kSample times: what is hot then is
// an estimate, at a tenth of the cost. Pure. One thread.

#include <array>
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

  void count(std::span<const RowId> ids);
  // The hottest first, at most `most`; those of equal counts by id.
  std::vector<Row> hottest(std::size_t most) const;

  static constexpr std::size_t kCounters = 64;
  static constexpr std::uint64_t kExact = std::uint64_t{1} << 16;
  static constexpr std::size_t kSample = 17;

 private:
  void add(RowId id, std::int64_t pulls);

  std::array<RowId, kCounters> ids_{};
  std::array<std::int64_t, kCounters> pulls_{};
  std::size_t used_ = 0;
  std::uint64_t counted_ = 0;
  std::size_t skip_ = 0;  // pulls until the next sample
};

}  // namespace paceline::pserver::sparse
