#pragma once

// Sparse tables in files (docs/checkpoints.md): a checkpoint's parts, and the final model's (model_files.h).
// One safetensors file for each table, "table-<name>.safetensors", whose rows come in chunks, so that a table
// of any size is written from begin to end and read likewise, with the memory of one chunk.
//
// Chunk k has, with n rows: ids/k (n), last/k (n), uses/k (n), steps/k (n) and rows/k (n, floats of a row
// with its state); in the final model ids/k and weights/k (n, dim) alone. Rows are in no order, and of all
// servers. One thread each.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/parts.h"
#include "runtime/pserver/sparse/rows.h"

namespace paceline::trainer {

enum class TableContents : std::uint8_t {
  kAll,      // what a training goes on from
  kWeights,  // what a model is
};

// "table-deep.safetensors"
std::string table_file(std::string_view table);

class TablePartsWriter final : public pserver::sparse::RowSink {
 public:
  // Makes a file, when its first rows come or at finish(): its errors are those of add() and finish().
  using OpenPart =
      std::function<absl::StatusOr<std::unique_ptr<checkpoint::PartWriter>>(const std::string& name)>;
  // `metadata`: what all files say besides.
  TablePartsWriter(const std::vector<pserver::sparse::TableSpec>& specs, TableContents contents,
                   OpenPart open, checkpoint::Metadata metadata = {});
  ~TablePartsWriter() override;

  // INVALID_ARGUMENT: numbers that can't be meant, or more rows than were announced.
  absl::Status begin(int table, int server, std::uint64_t rows, std::int64_t clock) override;
  absl::Status add(int table, int server, const pserver::sparse::SavedRows& rows) override;

  // Of all tables, in their order. INVALID_ARGUMENT: not all rows have come that were announced.
  absl::StatusOr<std::vector<checkpoint::FileEntry>> finish();

 private:
  struct Table;
  absl::Status open(Table& table);
  absl::Status write_chunk(Table& table);

  const TableContents contents_;
  const OpenPart open_;
  const checkpoint::Metadata metadata_;
  std::vector<Table> tables_;
};

class TablePartsReader final : public pserver::sparse::RowSource {
 public:
  // DATA_LOSS: a table is missing, or what is there is another one (whatever its rows are) or none.
  // INVALID_ARGUMENT: its rows have another width or other state than `specs` say. Outlives the store.
  static absl::StatusOr<std::unique_ptr<TablePartsReader>> open(
      const checkpoint::CheckpointStore& store, const checkpoint::LoadedCheckpoint& loaded,
      const std::vector<pserver::sparse::TableSpec>& specs) {
    return open(store, loaded.name, loaded.parts, specs);
  }
  // Of the checkpoint of that name, whose parts are known: one that this process has written.
  static absl::StatusOr<std::unique_ptr<TablePartsReader>> open(
      const checkpoint::CheckpointStore& store, const std::string& checkpoint,
      std::span<const checkpoint::FileEntry> parts, const std::vector<pserver::sparse::TableSpec>& specs);
  ~TablePartsReader() override;

  // About a MiB at a time. DATA_LOSS, where the file is damaged: at a table's last rows at the latest.
  absl::StatusOr<int> next(pserver::sparse::SavedRows& rows) override;

 private:
  struct Table;
  TablePartsReader();
  absl::Status read_chunk(Table& table);

  std::vector<Table> tables_;
  std::size_t table_ = 0;             // the one that is read
  pserver::sparse::SavedRows chunk_;  // of it
  std::size_t given_ = 0;             // rows of the chunk
};

}  // namespace paceline::trainer
