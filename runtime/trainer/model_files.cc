#include "runtime/trainer/model_files.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "runtime/checkpoint/file_header.h"
#include "runtime/trainer/table_parts.h"

namespace paceline::trainer {

namespace {

using checkpoint::Metadata;
using pserver::sparse::TableSpec;

Metadata metadata_of(const ModelStamp& stamp) {
  return {{"step", str_cat(stamp.step)}, {"weightsHash", absl::StrFormat("%016x", stamp.weights_hash)}};
}

std::string said(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : found->second;
}

std::optional<ModelStamp> stamp_of(const Metadata& metadata) {
  ModelStamp stamp;
  const std::string hash = said(metadata, "weightsHash");
  if (!absl::SimpleAtoi(said(metadata, "step"), &stamp.step) || hash.size() != 16 ||
      !absl::SimpleHexAtoi(hash, &stamp.weights_hash)) {
    return std::nullopt;
  }
  return stamp;
}

std::string in_words(const std::string& file, const Metadata& metadata) {
  if (!stamp_of(metadata).has_value()) return str_cat(file, " does not say");
  return str_cat(file, " of step ", said(metadata, "step"), " (weights ", said(metadata, "weightsHash"), ")");
}

}  // namespace

// ---- writing ----

absl::StatusOr<std::string> write_model_files(checkpoint::FileStore& files, const std::string& folder,
                                              const ModelStamp& stamp,
                                              std::span<const checkpoint::TensorView> dense,
                                              const std::vector<TableSpec>& tables, const TakeRows& take) {
  const auto temporary = [&](const std::string& name) { return str_cat(folder, "/", name, ".tmp"); };
  std::vector<std::string> names;
  for (const TableSpec& table : tables) names.push_back(table_file(table.name));
  names.emplace_back(kModelFile);
  Metadata metadata = metadata_of(stamp);
  const auto write = [&]() -> absl::Status {
    PL_RETURN_IF_ERROR(files.make_folder(folder));
    if (!tables.empty()) {
      TablePartsWriter writer(
          tables, TableContents::kWeights,
          [&](const std::string& name) -> absl::StatusOr<std::unique_ptr<checkpoint::PartWriter>> {
            PL_ASSIGN_OR_RETURN(auto file, files.create_file(temporary(name)));
            return std::make_unique<checkpoint::PartWriter>(std::move(file), name);
          },
          metadata);
      PL_RETURN_IF_ERROR(take(writer));
      PL_RETURN_IF_ERROR(writer.finish().status());
      metadata["tables"] = absl::StrJoin(
          tables, ",", [](std::string* text, const TableSpec& table) { text->append(table.name); });
    }
    metadata["format"] = "pt";
    std::string header;
    PL_ASSIGN_OR_RETURN(const checkpoint::Pieces pieces, checkpoint::pieces_of(dense, metadata, header));
    PL_RETURN_IF_ERROR(files.write_file(temporary(kModelFile), pieces));
    for (const std::string& name : names)
      PL_RETURN_IF_ERROR(files.rename(temporary(name), str_cat(folder, "/", name)));
    return files.sync_folder(folder);
  };
  const absl::Status status = write();
  if (status.ok()) return str_cat(folder, "/", kModelFile);
  for (const std::string& name : names) files.remove(temporary(name)).IgnoreError();
  return status;
}

// ---- reading ----

struct ModelReader::File {
  std::string name;
  std::unique_ptr<checkpoint::FileReader> file;
  std::vector<std::size_t> chunks;  // rows of each
  std::size_t chunk = 0;            // the next

  absl::Status read(std::span<std::byte> out) {
    PL_ASSIGN_OR_RETURN(const std::size_t got, file->read(out));
    return got == out.size() ? absl::OkStatus() : absl::DataLossError(str_cat(name, ": it ends too early"));
  }
};

namespace {

// Rows of each chunk: as many ids as rows of weights, one chunk behind the other.
absl::StatusOr<std::vector<std::size_t>> chunks_of(const checkpoint::SafetensorsHeader& header,
                                                   const ModelReader::Table& table) {
  std::map<std::string_view, const checkpoint::TensorEntry*> named;
  for (const checkpoint::TensorEntry& tensor : header.tensors) named[tensor.name] = &tensor;
  std::vector<std::size_t> chunks;
  std::uint64_t at = 0, total = 0;
  for (; 2 * chunks.size() < named.size(); total += chunks.back()) {
    const auto ids = named.find(str_cat("ids/", chunks.size()));
    const auto weights = named.find(str_cat("weights/", chunks.size()));
    const bool there = ids != named.end() && weights != named.end() && ids->second->dtype == DType::kI64 &&
                       ids->second->dims.size() == 1 && weights->second->dtype == DType::kF32;
    const std::int64_t rows = there ? ids->second->dims[0] : 0;
    const std::vector<std::int64_t> dims = {rows, static_cast<std::int64_t>(table.dim)};
    if (!there || weights->second->dims != dims || ids->second->begin != at ||
        weights->second->begin != ids->second->end) {
      return absl::DataLossError(
          str_cat("tensor 'ids/", chunks.size(), "' or its weights are missing or others"));
    }
    at = weights->second->end;
    chunks.push_back(static_cast<std::size_t>(rows));
  }
  if (total == table.rows) return chunks;
  return absl::DataLossError(str_cat("its chunks have ", total, " rows, it says ", table.rows));
}

}  // namespace

ModelReader::ModelReader() = default;
ModelReader::~ModelReader() = default;

absl::StatusOr<std::unique_ptr<ModelReader>> ModelReader::open(const checkpoint::FileStore& files,
                                                               const std::string& folder) {
  std::unique_ptr<ModelReader> reader(new ModelReader());
  PL_ASSIGN_OR_RETURN(reader->dense_, checkpoint::read_safetensors(files, str_cat(folder, "/", kModelFile)));
  const Metadata& metadata = reader->dense_.metadata;
  if (const std::string tables = said(metadata, "tables"); !tables.empty()) {
    const std::vector<std::string> names = absl::StrSplit(tables, ',');
    for (const std::string& name : names) reader->tables_.push_back({name});
  }
  const std::optional<ModelStamp> stamp = stamp_of(metadata);
  if (stamp.has_value()) reader->stamp_ = *stamp;
  PL_RETURN_IF_ERROR(reader->open_tables(files, folder));
  return reader;
}

absl::Status ModelReader::open_tables(const checkpoint::FileStore& files, const std::string& folder) {
  const std::optional<ModelStamp> stamp = stamp_of(dense_.metadata);
  bool mixed = false;
  std::string what = in_words(kModelFile, dense_.metadata);
  for (Table& table : tables_) {
    File& file = files_.emplace_back();
    file.name = table_file(table.name);
    auto opened = files.open_file(str_cat(folder, "/", file.name));
    if (absl::IsNotFound(opened.status())) {
      mixed = true;
      what += str_cat(", ", file.name, " missing");
      continue;
    }
    PL_RETURN_IF_ERROR(opened.status());
    file.file = *std::move(opened);
    const auto header = checkpoint::read_header(*file.file);
    if (!header.ok()) return with_context(header.status(), str_cat(folder, "/", file.name));
    const Metadata& metadata = header->metadata;
    what += str_cat(", ", in_words(file.name, metadata));
    mixed |= !stamp.has_value() || stamp_of(metadata) != stamp;
    if (!absl::SimpleAtoi(said(metadata, "dim"), &table.dim) ||
        !absl::SimpleAtoi(said(metadata, "rows"), &table.rows))
      return absl::DataLossError(str_cat(folder, "/", file.name, ": it does not say what it is a table of"));
    auto chunks = chunks_of(*header, table);
    if (!chunks.ok()) return with_context(chunks.status(), str_cat(folder, "/", file.name));
    file.chunks = *std::move(chunks);
  }
  if (!mixed) return absl::OkStatus();
  return absl::DataLossError(str_cat(folder, " holds files of different models: ", what,
                                     "; somebody was stopped while replacing one by the other, or copied "
                                     "some of the files. Let the job write "
                                     "its model once more (paceline run --resume goes on from its newest "
                                     "checkpoint), or copy all files again"));
}

absl::StatusOr<std::size_t> ModelReader::next(Rows& rows) {
  rows.ids.clear();
  rows.weights.clear();
  std::size_t count = 0;
  for (; table_ < files_.size(); ++table_) {
    File& file = files_[table_];
    while (count == 0 && file.chunk < file.chunks.size()) count = file.chunks[file.chunk++];
    if (count > 0) break;
  }
  if (count == 0) return 0;
  rows.ids.resize(count);
  rows.weights.resize(count * tables_[table_].dim);
  PL_RETURN_IF_ERROR(files_[table_].read(std::as_writable_bytes(std::span(rows.ids))));
  PL_RETURN_IF_ERROR(files_[table_].read(std::as_writable_bytes(std::span(rows.weights))));
  return table_;
}

}  // namespace paceline::trainer
