// Two passes over the ids: the first says whose each is and counts, the second puts them in their places.

#include "runtime/pserver/row_cut.h"

#include <algorithm>

#include "base/status.h"
#include "runtime/pserver/sparse/row_hash.h"

namespace paceline::pserver {

RowCut::RowCut(std::span<const sparse::TableSpec> tables, int servers)
    : tables_(tables), servers_(static_cast<std::size_t>(servers)), of_table_(tables.size(), -1) {
  for (OfServer& each : servers_) each.parts.reserve(tables.size());
}

// each(call, table), by table.
template <typename Each>
void RowCut::each_call(Each each) {
  for (std::size_t t = 0; t < of_table_.size(); ++t) {
    if (of_table_[t] >= 0) each(static_cast<std::uint32_t>(of_table_[t]), static_cast<std::uint32_t>(t));
  }
}

absl::Status RowCut::check(std::span<const RowsCall> calls) {
  rows_ = floats_ = 0;
  std::fill(of_table_.begin(), of_table_.end(), -1);
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const RowsCall& call = calls[c];
    PL_RETURN_IF_ERROR(sparse::check_rows(tables_, call.table, call.ids, call.floats));
    const auto t = static_cast<std::size_t>(call.table);
    if (of_table_[t] >= 0) {
      return absl::InvalidArgumentError(str_cat("table ", tables_[t].name, " comes twice in one call"));
    }
    of_table_[t] = static_cast<int>(c);
    rows_ += call.ids.size();
    floats_ += call.floats;
  }
  if (floats_ > sparse::kMaxFloatsPerCall) {
    return absl::InvalidArgumentError(str_cat(floats_, " floats of rows in one call, at most ",
                                              sparse::kMaxFloatsPerCall, ": call more often with fewer"));
  }
  return absl::OkStatus();
}

absl::Status RowCut::cut(std::span<const RowsCall> calls) {
  for (OfServer& each : servers_) {
    each.parts.clear();
    each.rows = each.float_count = 0;
  }
  PL_RETURN_IF_ERROR(check(calls));
  if (servers_.size() == 1) {
    take_whole(calls);
  } else {
    share_out(calls);
  }
  return absl::OkStatus();
}

void RowCut::share_out(std::span<const RowsCall> calls) {
  const int servers = static_cast<int>(servers_.size());
  const std::span<std::uint16_t> owner = owner_.take(rows_);
  std::size_t at = 0;
  each_call([&](std::uint32_t c, std::uint32_t t) {
    const std::size_t dim = tables_[t].dim;
    for (OfServer& each : servers_) each.parts.push_back({c, t, 0, each.rows, each.float_count, dim});
    for (const sparse::RowId id : calls[c].ids) {
      owner[at] = static_cast<std::uint16_t>(sparse::server_of(id, servers));
      ++servers_[owner[at++]].parts.back().count;
    }
    for (OfServer& each : servers_) {
      const std::size_t count = each.parts.back().count;
      if (count == 0) each.parts.pop_back();
      each.rows += count;
      each.float_count += count * dim;
    }
  });
  for (OfServer& each : servers_) {
    each.ids.take(each.rows);
    each.places.take(each.rows);
    each.rows = 0;
  }
  at = 0;
  each_call([&](std::uint32_t c, std::uint32_t) {
    const std::span<const sparse::RowId> ids = calls[c].ids;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      OfServer& of = servers_[owner[at++]];
      of.ids.all()[of.rows] = ids[k];
      of.places.all()[of.rows++] = static_cast<std::uint32_t>(k);
    }
  });
}

// All of it is the only server's, in the caller's order.
void RowCut::take_whole(std::span<const RowsCall> calls) {
  OfServer& of = servers_[0];
  const std::span<sparse::RowId> to = of.ids.take(rows_);
  each_call([&](std::uint32_t c, std::uint32_t t) {
    const std::span<const sparse::RowId> ids = calls[c].ids;
    if (ids.empty()) return;
    of.parts.push_back(
        {c, t, static_cast<std::uint32_t>(ids.size()), of.rows, of.float_count, tables_[t].dim});
    std::copy(ids.begin(), ids.end(), to.begin() + static_cast<std::ptrdiff_t>(of.rows));
    of.rows += ids.size();
    of.float_count += ids.size() * tables_[t].dim;
  });
}

}  // namespace paceline::pserver
