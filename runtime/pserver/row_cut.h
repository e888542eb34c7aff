#pragma once

// Cuts the rows of one pull or push by the servers that have them (sparse/row_hash.h): each server's ids,
// table by table, rising, and where each row stands in the caller's order. Pure. One thread; its memory stays
// for the next cut.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/pserver/grow_buffer.h"
#include "runtime/pserver/row_messages.h"
#include "runtime/pserver/sparse/rows.h"

namespace paceline::pserver {

// What a caller names of one table.
struct RowsCall {
  int table = 0;
  std::span<const sparse::RowId> ids;
  std::size_t floats = 0;  // that go with them
};

class RowCut {
 public:
  struct Part {
    std::uint32_t call = 0;  // its place among the calls
    std::uint32_t table = 0;
    std::uint32_t count = 0;  // at least one
    std::size_t first = 0;    // of its ids among the server's
    std::size_t floats = 0;   // before it, of the server's
    std::size_t dim = 0;
  };
  struct OfServer {
    std::vector<Part> parts;  // by table
    GrowBuffer<sparse::RowId> ids;
    GrowBuffer<std::uint32_t>
        places;                // of row k in its call; with one server it is k, and this is not filled
    GrowBuffer<float> floats;  // the caller's to use
    std::size_t rows = 0, float_count = 0;
  };

  // REQUIRES: `tables` outlives it.
  RowCut(std::span<const sparse::TableSpec> tables, int servers);

  // INVALID_ARGUMENT of sparse::check_rows(); a table that comes twice; more than sparse::kMaxFloatsPerCall
  // floats. What was cut before is gone either way.
  absl::Status cut(std::span<const RowsCall> calls);

  OfServer& of(int server) { return servers_[static_cast<std::size_t>(server)]; }
  const OfServer& of(int server) const { return servers_[static_cast<std::size_t>(server)]; }
  bool placed() const { return servers_.size() > 1; }
  std::size_t rows() const { return rows_; }
  std::size_t floats() const { return floats_; }

 private:
  absl::Status check(std::span<const RowsCall> calls);
  void share_out(std::span<const RowsCall> calls);
  void take_whole(std::span<const RowsCall> calls);
  template <typename Each>
  void each_call(Each each);

  const std::span<const sparse::TableSpec> tables_;
  std::vector<OfServer> servers_;
  std::vector<int> of_table_;        // its call, or -1
  GrowBuffer<std::uint16_t> owner_;  // the server of each row of the calls, one behind the other
  std::size_t rows_ = 0, floats_ = 0;
};

}  // namespace paceline::pserver
