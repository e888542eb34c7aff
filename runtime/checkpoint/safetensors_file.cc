#include "runtime/checkpoint/safetensors_file.h"

#include <utility>

#include "base/status.h"
#include "runtime/checkpoint/layout.h"

namespace paceline::checkpoint {

absl::StatusOr<Pieces> pieces_of(std::span<const TensorView> tensors, const Metadata& metadata,
                                 std::string& header) {
  PL_ASSIGN_OR_RETURN(header, encode_header(tensors, metadata));
  Pieces pieces{text_bytes(header)};
  for (const TensorView& tensor : tensors) pieces.push_back(tensor.data);
  return pieces;
}

absl::StatusOr<LoadedTensors> parse_safetensors(std::vector<std::byte> bytes) {
  LoadedTensors loaded;
  loaded.bytes = std::move(bytes);
  PL_ASSIGN_OR_RETURN(SafetensorsHeader header, parse_header(loaded.bytes, loaded.bytes.size()));
  const auto data = std::span<const std::byte>(loaded.bytes).subspan(header.data_begin);
  for (TensorEntry& entry : header.tensors) {
    loaded.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.dims),
                              data.subspan(entry.begin, entry.end - entry.begin)});
  }
  loaded.metadata = std::move(header.metadata);
  return loaded;
}

absl::Status write_safetensors(FileStore& files, const std::string& path, std::span<const TensorView> tensors,
                               const Metadata& metadata) {
  std::string header;
  PL_ASSIGN_OR_RETURN(const Pieces pieces, pieces_of(tensors, metadata, header));
  const std::string folder = folder_of(path);
  const std::string temporary = str_cat(path, ".tmp");
  PL_RETURN_IF_ERROR(files.make_folder(folder));
  absl::Status status = files.write_file(temporary, pieces);
  if (status.ok()) status = files.rename(temporary, path);
  if (!status.ok()) {
    files.remove(temporary).IgnoreError();
    return status;
  }
  return files.sync_folder(folder);
}

absl::Status write_model(const std::string& path, std::span<const TensorView> tensors,
                         const Metadata& metadata) {
  return write_safetensors(*make_directory_store(), path, tensors, metadata);
}

absl::StatusOr<LoadedTensors> read_safetensors(const FileStore& files, const std::string& path) {
  PL_ASSIGN_OR_RETURN(auto bytes, files.read_file(path, kMaxStateBytes));
  auto loaded = parse_safetensors(std::move(bytes));
  if (!loaded.ok()) return with_context(loaded.status(), path);
  return loaded;
}

absl::StatusOr<LoadedTensors> read_model(const std::string& path) {
  return read_safetensors(*make_directory_store(), path);
}

}  // namespace paceline::checkpoint
