#include "runtime/pserver/sparse/rows.h"

#include "base/status.h"

namespace paceline::pserver::sparse {

absl::Status check_rising(std::span<const RowId> ids) {
  for (std::size_t k = 1; k < ids.size(); ++k) {
    if (ids[k] > ids[k - 1]) continue;
    return absl::InvalidArgumentError(str_cat("row ids must rise: number ", k, " is ", ids[k], " after ",
                                              ids[k - 1],
                                              ids[k] == ids[k - 1] ? ", the same row twice" : ""));
  }
  return absl::OkStatus();
}

absl::Status check_rows(std::span<const TableSpec> tables, int table, std::span<const RowId> ids,
                        std::size_t floats) {
  if (table < 0 || static_cast<std::size_t>(table) >= tables.size()) {
    return absl::InvalidArgumentError(
        str_cat("table ", table, " of ", tables.size(), ": there is no such table"));
  }
  const TableSpec& spec = tables[static_cast<std::size_t>(table)];
  if (ids.size() > kMaxRowsPerCall) {
    return absl::InvalidArgumentError(
        str_cat("table ", spec.name, ": ", ids.size(), " rows in one call, at most ", kMaxRowsPerCall));
  }
  if (floats != ids.size() * spec.dim) {
    return absl::InvalidArgumentError(
        str_cat("table ", spec.name, ": ", floats, " floats for ", ids.size(), " rows of ", spec.dim));
  }
  return with_context(check_rising(ids), str_cat("table ", spec.name));
}

}  // namespace paceline::pserver::sparse
