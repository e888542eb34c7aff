// A file's header says how many rows its chunks have, and is written first: what the servers announce is
// enough for it. The memory is that of one chunk for each table; chunks have even numbers of rows, but for
// the last, so that all tensors of 8 bytes lie at multiples of 8.

#include "runtime/trainer/table_parts.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"

namespace paceline::trainer {

struct PartColumn {
  const char* name;
  DType dtype;
  std::size_t width;  // 0: one number for each row
};

namespace {

using Column = PartColumn;

using checkpoint::FileEntry;
using checkpoint::TensorEntry;
using checkpoint::TensorShape;
using pserver::sparse::row_floats;
using pserver::sparse::SavedRows;
using pserver::sparse::TableSpec;

constexpr std::uint64_t kChunkBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxChunks = 10'000;  // of a table: more rows make longer ones
constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 48;
constexpr std::size_t kBatchFloats = std::size_t{1} << 18;

std::vector<std::string> states_of(const TableSpec& spec) {
  return pserver::sparse::state_names(spec.optimizer);
}

std::vector<Column> columns_of(const TableSpec& spec, TableContents contents) {
  if (contents == TableContents::kWeights)
    return {{"ids", DType::kI64, 0}, {"weights", DType::kF32, spec.dim}};
  return {{"ids", DType::kI64, 0},
          {"last", DType::kI64, 0},
          {"uses", DType::kI32, 0},
          {"steps", DType::kI32, 0},
          {"rows", DType::kF32, row_floats(spec)}};
}

std::uint64_t row_bytes(std::span<const Column> columns) {
  std::uint64_t bytes = 0;
  for (const Column& column : columns)
    bytes += dtype_bytes(column.dtype) * std::max<std::size_t>(1, column.width);
  return bytes;
}

std::uint64_t rows_of_chunk(std::span<const Column> columns, std::uint64_t rows) {
  const std::uint64_t fitting = kChunkBytes / row_bytes(columns),
                      needed = (rows + kMaxChunks - 1) / kMaxChunks;
  return (std::max({fitting, needed, std::uint64_t{1}}) + 1) / 2 * 2;
}

TensorShape column_shape(const Column& column, std::size_t chunk, std::uint64_t rows) {
  TensorShape shape{str_cat(column.name, "/", chunk), column.dtype, {static_cast<std::int64_t>(rows)}};
  if (column.width > 0) shape.dims.push_back(static_cast<std::int64_t>(column.width));
  return shape;
}

}  // namespace

std::string table_file(std::string_view table) {
  return str_cat("table-", table, ".safetensors");
}

// ---- writing ----

struct TablePartsWriter::Table {
  TableSpec spec;
  std::vector<Column> columns;
  std::uint64_t announced = 0, come = 0;
  std::uint64_t chunk_rows = 0;
  std::unique_ptr<checkpoint::PartWriter> part;
  SavedRows chunk;
};

TablePartsWriter::TablePartsWriter(const std::vector<TableSpec>& specs, TableContents contents, OpenPart open,
                                   checkpoint::Metadata metadata)
    : contents_(contents), open_(std::move(open)), metadata_(std::move(metadata)) {
  for (const TableSpec& spec : specs) {
    Table& table = tables_.emplace_back();
    table.spec = spec;
    table.columns = columns_of(spec, contents);
  }
}

TablePartsWriter::~TablePartsWriter() = default;

absl::Status TablePartsWriter::begin(int table, int server, std::uint64_t rows, std::int64_t) {
  PL_CHECK(table >= 0 && static_cast<std::size_t>(table) < tables_.size(), "a table of the job");
  Table& t = tables_[static_cast<std::size_t>(table)];
  PL_CHECK(t.part == nullptr, "all servers say how many rows they have before the first comes");
  if (rows > kMaxRows) {
    return absl::InvalidArgumentError(
        str_cat("table ", t.spec.name, ": server ", server, " announces ", rows, " rows"));
  }
  t.announced += rows;
  return absl::OkStatus();
}

absl::Status TablePartsWriter::open(Table& table) {
  table.chunk_rows = rows_of_chunk(table.columns, table.announced);
  std::vector<TensorShape> shapes;
  for (std::uint64_t at = 0; at < table.announced; at += table.chunk_rows) {
    const std::uint64_t rows = std::min(table.chunk_rows, table.announced - at);
    const std::size_t chunk = shapes.size() / table.columns.size();
    for (const Column& column : table.columns) shapes.push_back(column_shape(column, chunk, rows));
  }
  checkpoint::Metadata metadata = metadata_;
  metadata["table"] = table.spec.name;
  metadata["dim"] = str_cat(table.spec.dim);
  metadata["rows"] = str_cat(table.announced);
  if (contents_ == TableContents::kAll) metadata["state"] = absl::StrJoin(states_of(table.spec), ",");
  PL_ASSIGN_OR_RETURN(const std::string header, checkpoint::encode_header_of(shapes, metadata));
  PL_ASSIGN_OR_RETURN(table.part, open_(table_file(table.spec.name)));
  return table.part->append(checkpoint::text_bytes(header));
}

absl::Status TablePartsWriter::add(int table, int server, const SavedRows& rows) {
  PL_CHECK(table >= 0 && static_cast<std::size_t>(table) < tables_.size(), "a table of the job");
  Table& t = tables_[static_cast<std::size_t>(table)];
  t.come += rows.size();
  if (t.come > t.announced) {
    return absl::InvalidArgumentError(str_cat("table ", t.spec.name, ": server ", server, " sends row ",
                                              t.come, " of ", t.announced, " that were announced"));
  }
  if (rows.floats.size() != rows.size() * row_floats(t.spec)) {
    return absl::InvalidArgumentError(str_cat("table ", t.spec.name, ": server ", server, " sends ",
                                              rows.floats.size(), " floats for ", rows.size(), " rows of ",
                                              row_floats(t.spec)));
  }
  if (t.part == nullptr) PL_RETURN_IF_ERROR(open(t));
  const std::size_t width = t.columns.back().width;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    t.chunk.append(rows, k, width);
    if (t.chunk.size() == t.chunk_rows) PL_RETURN_IF_ERROR(write_chunk(t));
  }
  return absl::OkStatus();
}

absl::Status TablePartsWriter::write_chunk(Table& table) {
  const SavedRows& chunk = table.chunk;
  PL_RETURN_IF_ERROR(table.part->append(std::as_bytes(std::span(chunk.ids))));
  if (contents_ == TableContents::kAll) {
    PL_RETURN_IF_ERROR(table.part->append(std::as_bytes(std::span(chunk.last))));
    PL_RETURN_IF_ERROR(table.part->append(std::as_bytes(std::span(chunk.uses))));
    PL_RETURN_IF_ERROR(table.part->append(std::as_bytes(std::span(chunk.steps))));
  }
  PL_RETURN_IF_ERROR(table.part->append(std::as_bytes(std::span(chunk.floats))));
  table.chunk.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FileEntry>> TablePartsWriter::finish() {
  std::vector<FileEntry> entries;
  for (Table& table : tables_) {
    if (table.come < table.announced) {
      return absl::InvalidArgumentError(
          str_cat("table ", table.spec.name, ": ", table.come, " of ", table.announced, " rows have come"));
    }
    if (table.part == nullptr) PL_RETURN_IF_ERROR(open(table));
    if (table.chunk.size() > 0) PL_RETURN_IF_ERROR(write_chunk(table));
    PL_ASSIGN_OR_RETURN(FileEntry entry, table.part->finish());
    entries.push_back(std::move(entry));
  }
  return entries;
}

// ---- reading ----

struct TablePartsReader::Table {
  TableSpec spec;
  std::unique_ptr<checkpoint::PartReader> part;
  std::vector<std::size_t> chunks;  // rows of each
  std::size_t chunk = 0;            // the next
};

namespace {

std::string value_of(const checkpoint::Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string("?") : found->second;
}

constexpr const char* kWhatToDo =
    "; it was put together of other files: take it from where it was saved, or remove this checkpoint";

// The manifest knows a file by its name, size and checksum alone: which table it is of its header says, and
// is asked first. Of another table's the width and the optimizer are nobody's mistake.
absl::Status check_name(const std::string& checkpoint, const TableSpec& spec,
                        const checkpoint::Metadata& metadata) {
  const std::string name = value_of(metadata, "table");
  if (name == spec.name) return absl::OkStatus();
  return absl::DataLossError(str_cat("checkpoint ", checkpoint, ": ", table_file(spec.name),
                                     " is of the table '", name, "', not of '", spec.name, "'", kWhatToDo));
}

absl::Status check_shape(const std::string& checkpoint, const TableSpec& spec,
                         const checkpoint::Metadata& metadata) {
  const auto said = [&](const char* key) { return value_of(metadata, key); };
  const std::string state = absl::StrJoin(states_of(spec), ",");
  if (said("dim") == str_cat(spec.dim) && said("state") == state) return absl::OkStatus();
  const auto words = [](const std::string& dim, const std::string& names) {
    return str_cat("rows of ", dim, " floats with ", names.empty() ? "no state" : "the state ", names);
  };
  return absl::InvalidArgumentError(str_cat("checkpoint ", checkpoint, ": table ", spec.name, " has ",
                                            words(said("dim"), said("state")), ", this job needs ",
                                            words(str_cat(spec.dim), state),
                                            "; continue with the table's optimizer and width"));
}

// Rows of each chunk. The tensors lie one behind the other, as parse_header() knows.
absl::StatusOr<std::vector<std::size_t>> chunks_of_part(std::span<const TensorEntry> tensors,
                                                        const TableSpec& spec) {
  const std::vector<Column> columns = columns_of(spec, TableContents::kAll);
  std::vector<std::size_t> chunks;
  for (std::size_t at = 0; at < tensors.size(); at += columns.size()) {
    const std::int64_t rows = tensors[at].dims.empty() ? 0 : tensors[at].dims[0];
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const TensorShape expected = column_shape(columns[c], chunks.size(), static_cast<std::uint64_t>(rows));
      const bool same = at + c < tensors.size() && rows > 0 && tensors[at + c].name == expected.name &&
                        tensors[at + c].dtype == expected.dtype && tensors[at + c].dims == expected.dims;
      if (!same)
        return absl::DataLossError(
            str_cat(table_file(spec.name), ": tensor '", expected.name, "' is missing or another"));
    }
    chunks.push_back(static_cast<std::size_t>(rows));
  }
  return chunks;
}

// Last: only of the table that it should be are the rows worth counting.
absl::Status check_rows(const std::string& checkpoint, const TableSpec& spec,
                        const checkpoint::Metadata& metadata, std::span<const std::size_t> chunks) {
  std::uint64_t rows = 0;
  for (const std::size_t chunk : chunks) rows += chunk;
  const std::string said = value_of(metadata, "rows");
  if (said == str_cat(rows)) return absl::OkStatus();
  return absl::DataLossError(str_cat("checkpoint ", checkpoint, ": ", table_file(spec.name), " says ", said,
                                     " rows, and has ", rows, kWhatToDo));
}

}  // namespace

TablePartsReader::TablePartsReader() = default;
TablePartsReader::~TablePartsReader() = default;

absl::StatusOr<std::unique_ptr<TablePartsReader>> TablePartsReader::open(
    const checkpoint::CheckpointStore& store, const std::string& checkpoint, std::span<const FileEntry> parts,
    const std::vector<TableSpec>& specs) {
  std::unique_ptr<TablePartsReader> reader(new TablePartsReader());
  for (const TableSpec& spec : specs) {
    Table& table = reader->tables_.emplace_back();
    table.spec = spec;
    PL_ASSIGN_OR_RETURN(table.part, store.open_part(checkpoint, parts, table_file(spec.name)));
    PL_ASSIGN_OR_RETURN(const checkpoint::SafetensorsHeader header, checkpoint::read_header(*table.part));
    PL_RETURN_IF_ERROR(check_name(checkpoint, spec, header.metadata));
    PL_RETURN_IF_ERROR(check_shape(checkpoint, spec, header.metadata));
    PL_ASSIGN_OR_RETURN(table.chunks, chunks_of_part(header.tensors, spec));
    PL_RETURN_IF_ERROR(check_rows(checkpoint, spec, header.metadata, table.chunks));
  }
  return reader;
}

absl::Status TablePartsReader::read_chunk(Table& table) {
  const std::size_t rows = table.chunks[table.chunk++];
  const auto read = [&](auto& column, std::size_t width) {
    column.resize(rows * width);
    return table.part->read(std::as_writable_bytes(std::span(column)));
  };
  PL_RETURN_IF_ERROR(read(chunk_.ids, 1));
  PL_RETURN_IF_ERROR(read(chunk_.last, 1));
  PL_RETURN_IF_ERROR(read(chunk_.uses, 1));
  PL_RETURN_IF_ERROR(read(chunk_.steps, 1));
  PL_RETURN_IF_ERROR(read(chunk_.floats, row_floats(table.spec)));
  given_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<int> TablePartsReader::next(SavedRows& rows) {
  rows.clear();
  while (given_ == chunk_.size()) {
    if (table_ == tables_.size()) return 0;
    Table& table = tables_[table_];
    if (table.chunk < table.chunks.size()) {
      PL_RETURN_IF_ERROR(read_chunk(table));
    } else {
      ++table_;
    }
  }
  const std::size_t width = row_floats(tables_[table_].spec);
  const std::size_t most = std::max<std::size_t>(1, kBatchFloats / width);
  for (const std::size_t end = std::min(chunk_.size(), given_ + most); given_ < end; ++given_) {
    rows.append(chunk_, given_, width);
  }
  return static_cast<int>(table_);
}

}  // namespace paceline::trainer
