#include "runtime/pserver/row_messages.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "runtime/pserver/message_writer.h"

namespace paceline::pserver {

namespace {

constexpr std::size_t kRowNotes = sparse::SavedRows::kNoteBytes;

template <typename Number>
void read_all(ByteReader& reader, std::size_t count, std::vector<Number>& values) {
  values.resize(count);
  const Bytes bytes = reader.bytes(count * sizeof(Number));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

}  // namespace

void encode(const RowsMessage& message, Buffer& buffer) {
  Writer writer(buffer);
  for (const RowsOfTable& part : message) {
    writer.put(part.table);
    writer.put(part.count);
    writer.put(part.gradient);
  }
}

absl::Status decode(Bytes bytes, RowsMessage& message) {
  message.clear();
  if (bytes.empty() || bytes.size() % sizeof(RowsOfTable) != 0 ||
      bytes.size() > sparse::kMaxTables * sizeof(RowsOfTable)) {
    return bad_message("rows");
  }
  ByteReader reader(bytes);
  while (reader.remaining() > 0) {
    RowsOfTable part;
    part.table = reader.u32();
    part.count = reader.u32();
    part.gradient = reader.u64();
    const bool rises = message.empty() || part.table > message.back().table;
    if (!rises || part.count == 0 || part.count > sparse::kMaxRowsPerCall) return bad_message("rows");
    message.push_back(part);
  }
  return absl::OkStatus();
}

void encode(const TablesMessage& message, Buffer& buffer) {
  Writer writer(buffer);
  for (const TableMark& table : message) {
    writer.put(table.rows);
    writer.put(table.clock);
  }
}

absl::Status decode(Bytes bytes, TablesMessage& message) {
  message.clear();
  if (bytes.empty() || bytes.size() % sizeof(TableMark) != 0 ||
      bytes.size() > sparse::kMaxTables * sizeof(TableMark)) {
    return bad_message("Tables");
  }
  ByteReader reader(bytes);
  while (reader.remaining() > 0) {
    TableMark table;
    table.rows = reader.u64();
    table.clock = static_cast<std::int64_t>(reader.u64());
    if (table.clock < 0) return bad_message("Tables");
    message.push_back(table);
  }
  return absl::OkStatus();
}

void encode(const sparse::SavedRows& rows, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(static_cast<std::uint32_t>(rows.size()));
  writer.put_all(std::span<const sparse::RowId>(rows.ids));
  writer.put_all(std::span<const std::int64_t>(rows.last));
  writer.put_all(std::span<const std::uint32_t>(rows.uses));
  writer.put_all(std::span<const std::uint32_t>(rows.steps));
  writer.put_all(std::span<const float>(rows.floats));
}

absl::Status decode(Bytes bytes, std::size_t row_floats, sparse::SavedRows& rows) {
  rows.clear();
  ByteReader reader(bytes);
  const std::size_t count = reader.u32();
  if (!reader.ok() || reader.remaining() != count * (kRowNotes + row_floats * sizeof(float))) {
    return bad_message("SavedRows");
  }
  read_all(reader, count, rows.ids);
  read_all(reader, count, rows.last);
  read_all(reader, count, rows.uses);
  read_all(reader, count, rows.steps);
  read_all(reader, count * row_floats, rows.floats);
  return absl::OkStatus();
}

std::size_t rows_of_batch(std::size_t row_floats) {
  return std::max<std::size_t>(1, kRowsBatchBytes / (kRowNotes + row_floats * sizeof(float)));
}

std::uint32_t fingerprint(std::span<const sparse::TableSpec> tables) {
  if (tables.empty()) return 0;
  Buffer buffer, all;
  for (const sparse::TableSpec& spec : tables) {
    Writer writer(buffer);
    writer.put(spec.name);
    writer.put(static_cast<std::uint64_t>(spec.dim));
    writer.put(spec.seed);
    writer.put(spec.initializer.kind);
    writer.put(spec.initializer.scale);
    const sparse::RowOptimizer& rule = spec.optimizer;
    writer.put(rule.kind);
    for (const double each : {rule.learning_rate, rule.momentum, rule.beta1, rule.beta2, rule.epsilon,
                              rule.beta, rule.l1, rule.l2}) {
      writer.put(each);
    }
    writer.put(spec.bound.max_rows);
    writer.put(spec.bound.evict);
    all.insert(all.end(), buffer.begin(), buffer.end());
  }
  return std::max<std::uint32_t>(1, crc32c(all));
}

std::string names_of(std::span<const sparse::TableSpec> tables) {
  std::string text;
  for (const sparse::TableSpec& spec : tables) {
    text += str_cat(text.empty() ? "" : ", ", spec.name, " of ", spec.dim);
  }
  return text.empty() ? "none" : text;
}

}  // namespace paceline::pserver
