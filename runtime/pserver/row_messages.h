#pragma once

// The payloads of the frames about sparse tables that are messages (docs/protocol.md, "Sparse tables").
// encode() and decode() as in messages.h. Pure.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/pserver/messages.h"
#include "runtime/pserver/sparse/rows.h"
#include "runtime/pserver/sparse/table_spec.h"

namespace paceline::pserver {

// What a pull or a push has of one table, for one server.
struct RowsOfTable {
  std::uint32_t table = 0;
  std::uint32_t count = 0;  // of rows: at least one
  std::uint64_t gradient =
      0;  // a push, sharing memory: where the table's gradients lie in the worker's arena
  bool operator==(const RowsOfTable&) const = default;
};

// kPullRows, kPushRows: by table, rising; at least one.
using RowsMessage = std::vector<RowsOfTable>;

// kTables: what one server's tables have in a snapshot.
struct TableMark {
  std::uint64_t rows = 0;
  std::int64_t clock = 0;
  bool operator==(const TableMark&) const = default;
};
using TablesMessage = std::vector<TableMark>;

inline constexpr std::size_t kRowsBatchBytes = std::size_t{1} << 20;  // of one kSavedRows

void encode(const RowsMessage& message, Buffer& buffer);
void encode(const TablesMessage& message, Buffer& buffer);
void encode(const sparse::SavedRows& rows, Buffer& buffer);

absl::Status decode(Bytes bytes, RowsMessage& message);
absl::Status decode(Bytes bytes, TablesMessage& message);
// Of a table whose rows have so many floats each.
absl::Status decode(Bytes bytes, std::size_t row_floats, sparse::SavedRows& rows);

// Rows of a batch of about kRowsBatchBytes; at least one.
std::size_t rows_of_batch(std::size_t row_floats);
// The same for the same tables in the same order with the same settings; 0: none.
std::uint32_t fingerprint(std::span<const sparse::TableSpec> tables);
// "wide of 1, deep of 16", as errors tell them.
std::string names_of(std::span<const sparse::TableSpec> tables);

}  // namespace paceline::pserver
