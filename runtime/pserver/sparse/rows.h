#pragma once

// What a worker says to the tables: rows by their ids (client.h, pull_rows() and push_rows()), and what
// becomes of them in checkpoints. Tables are counted as ClientOptions::tables has them.

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/pserver/sparse/sparse_table.h"
#include "runtime/pserver/sparse/table_spec.h"

namespace paceline::pserver::sparse {

// Row ids[k] comes to rows[k * dim, (k + 1) * dim). The ids rise, so none comes twice; at most
// kMaxRowsPerCall.
struct RowsPull {
  int table = 0;
  std::span<const RowId> ids;
  std::span<float> rows;
};

// gradient[k * dim, (k + 1) * dim) is that of row ids[k], over the samples of the unit, scaled as the dense
// gradient is (1 / globalBatchSize). The ids rise. The gradient lies in the fabric's arena, and belongs to
// the servers until the next wait_turn() has returned; the ids are copied.
struct RowsPush {
  int table = 0;
  std::span<const RowId> ids;
  std::span<const float> gradient;
};

// Where rows of a checkpoint come from, batch by batch.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Fills `rows` with some of one table, and tells which. None: all of all tables have come. A batch is held
  // in memory, and each server's part of it once more: some MiB are right.
  virtual absl::StatusOr<int> next(SavedRows& rows) = 0;
};

// Where rows of a snapshot go. First begin() for every table and server, with how many rows will come and the
// table's clock there (updates; the same on all servers of a view), then add(), in any order of tables
// and servers,
// until all rows have come; one thread. An error ends the snapshot.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual absl::Status begin(int table, int server, std::uint64_t rows, std::int64_t clock) = 0;
  virtual absl::Status add(int table, int server, const SavedRows& rows) = 0;
};

// INVALID_ARGUMENT: an unknown table, too many ids, ids that do not rise (with the first place where they
// don't), or `floats` that are not dim for each id.
absl::Status check_rows(std::span<const TableSpec> tables, int table, std::span<const RowId> ids,
                        std::size_t floats);
// The ids rise: INVALID_ARGUMENT names the first that does not.
absl::Status check_rising(std::span<const RowId> ids);

}  // namespace paceline::pserver::sparse
