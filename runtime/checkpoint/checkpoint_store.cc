#include "runtime/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/status.h"

// Saving, and what a crash after each operation leaves:
//   1. write .saving/state.safetensors (synced)     a hidden folder, removed by the next save
//   2. write .saving/manifest.json (synced), sync .saving
//   3. rename .saving to step-N, sync the folder    complete: step-N counts from here
//   4. remove the oldest beyond `keep`              its manifest first, so that half a removal is refused
// A step that is saved again is renamed to .replaced before 3 and removed in 4. Where nothing else is
// complete, load_latest() takes .replaced, so that there is a checkpoint at every moment, even with keep = 1.

namespace paceline::checkpoint {

namespace {

using Pieces = std::vector<std::span<const std::byte>>;

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kMinDigits = 9;
constexpr std::size_t kMaxDigits = 18;
constexpr const char* kStateName = "state.safetensors";
constexpr const char* kManifestName = "manifest.json";
constexpr const char* kSavingName = ".saving";
constexpr const char* kReplacedName = ".replaced";
constexpr std::uint64_t kMaxStateBytes = std::uint64_t{1} << 40;

std::string name_of(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kMinDigits) digits.insert(0, kMinDigits - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

// The step of a checkpoint's folder name, -1 for other names.
std::int64_t step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return -1;
  name.remove_prefix(kPrefix.size());
  if (name.size() < kMinDigits || name.size() > kMaxDigits) return -1;
  std::int64_t step = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return -1;
    step = step * 10 + (c - '0');
  }
  return step;
}

// Names of the checkpoints in a folder, oldest first; none where there is no folder.
absl::StatusOr<std::vector<std::string>> checkpoint_names(const FileStore& files, const std::string& folder) {
  auto names = files.list(folder);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>{};
  if (!names.ok()) return names.status();
  std::erase_if(*names, [](const std::string& name) { return step_of(name) < 0; });
  std::sort(names->begin(), names->end(),
            [](const std::string& a, const std::string& b) { return step_of(a) < step_of(b); });
  return *std::move(names);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Header and data of a safetensors file; `header` holds what the first piece points to.
absl::StatusOr<Pieces> pieces_of(std::span<const TensorView> tensors, const Metadata& metadata,
                                 std::string& header) {
  PL_ASSIGN_OR_RETURN(header, encode_header(tensors, metadata));
  Pieces pieces{bytes_of(header)};
  for (const TensorView& tensor : tensors) pieces.push_back(tensor.data);
  return pieces;
}

FileEntry describe(std::string name, const Pieces& pieces) {
  FileEntry entry{std::move(name)};
  for (const auto& piece : pieces) {
    entry.bytes += piece.size();
    entry.crc32c = crc32c(piece, entry.crc32c);
  }
  return entry;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::StatusOr<LoadedTensors> parse_file(std::vector<std::byte> bytes) {
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

}  // namespace

const TensorView* LoadedCheckpoint::find(std::string_view wanted) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == wanted; });
  return found == tensors.end() ? nullptr : &*found;
}

absl::Status LoadedCheckpoint::copy_to(std::string_view wanted, DType dtype, std::span<std::byte> out) const {
  const TensorView* tensor = find(wanted);
  if (tensor == nullptr) return absl::DataLossError(str_cat(name, ": there is no tensor '", wanted, "'"));
  if (tensor->dtype != dtype || tensor->data.size() != out.size()) {
    return absl::DataLossError(str_cat(name, ": tensor '", wanted, "' has ", tensor->data.size(),
                                       " bytes of ", dtype_name(tensor->dtype), ", this job needs ",
                                       out.size(), " of ", dtype_name(dtype), "; was the model changed?"));
  }
  if (!out.empty()) std::memcpy(out.data(), tensor->data.data(), out.size());
  return absl::OkStatus();
}

std::string checkpoint_path(const std::string& folder, std::int64_t step) {
  return str_cat(folder, "/", name_of(step));
}

CheckpointStore::CheckpointStore(std::string folder, std::int64_t keep)
    : own_files_(make_directory_store()), files_(*own_files_), folder_(std::move(folder)), keep_(keep) {
  PL_CHECK(keep >= 1, "at least one checkpoint is kept");
}

CheckpointStore::CheckpointStore(FileStore& files, std::string folder, std::int64_t keep)
    : files_(files), folder_(std::move(folder)), keep_(keep) {
  PL_CHECK(keep >= 1, "at least one checkpoint is kept");
}

CheckpointStore::~CheckpointStore() = default;

absl::Status CheckpointStore::write_folder(const std::string& folder, const Snapshot& snapshot) {
  std::string header;
  PL_ASSIGN_OR_RETURN(const Pieces state, pieces_of(snapshot.tensors, {}, header));
  PL_RETURN_IF_ERROR(files_.make_folder(folder));
  PL_RETURN_IF_ERROR(files_.write_file(str_cat(folder, "/", kStateName), state));
  const std::string manifest = encode_manifest({snapshot.progress, {describe(kStateName, state)}});
  PL_RETURN_IF_ERROR(files_.write_file(str_cat(folder, "/", kManifestName), Pieces{bytes_of(manifest)}));
  return files_.sync_folder(folder);
}

absl::Status CheckpointStore::check_writable() {
  const std::string saving = str_cat(folder_, "/", kSavingName);
  PL_RETURN_IF_ERROR(files_.make_folder(folder_));
  PL_RETURN_IF_ERROR(files_.remove(saving));
  PL_RETURN_IF_ERROR(files_.make_folder(saving));
  return files_.remove(saving);
}

absl::Status CheckpointStore::save(const Snapshot& snapshot) {
  PL_CHECK(snapshot.progress.step >= 0, "steps count from 0");
  const std::string saving = str_cat(folder_, "/", kSavingName);
  const std::string replaced = str_cat(folder_, "/", kReplacedName);
  const std::string name = name_of(snapshot.progress.step);
  const std::string target = str_cat(folder_, "/", name);
  PL_RETURN_IF_ERROR(files_.make_folder(folder_));
  PL_RETURN_IF_ERROR(files_.remove(saving));
  absl::Status status = write_folder(saving, snapshot);
  if (!status.ok()) {
    files_.remove(saving).IgnoreError();  // a full disk gets its room back
    return with_context(status, str_cat("checkpoint of step ", snapshot.progress.step));
  }
  PL_ASSIGN_OR_RETURN(const auto names, checkpoint_names(files_, folder_));
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    PL_RETURN_IF_ERROR(files_.remove(replaced));
    PL_RETURN_IF_ERROR(files_.rename(target, replaced));
  }
  PL_RETURN_IF_ERROR(files_.rename(saving, target));
  PL_RETURN_IF_ERROR(files_.sync_folder(folder_));
  remove_old(snapshot.progress.step);
  return absl::OkStatus();
}

// The new checkpoint is safe; what can't be removed now is removed after the next save.
void CheckpointStore::remove_old(std::int64_t saved_step) const {
  files_.remove(str_cat(folder_, "/", kReplacedName)).IgnoreError();
  auto names = checkpoint_names(files_, folder_);
  if (!names.ok()) return;
  std::erase_if(*names, [saved_step](const std::string& name) { return step_of(name) > saved_step; });
  const auto keep = static_cast<std::size_t>(keep_);
  for (std::size_t i = 0; i + keep < names->size(); ++i) {
    const std::string path = str_cat(folder_, "/", (*names)[i]);
    files_.remove(str_cat(path, "/", kManifestName)).IgnoreError();
    files_.remove(path).IgnoreError();
  }
}

absl::StatusOr<std::vector<std::string>> CheckpointStore::candidates() const {
  PL_ASSIGN_OR_RETURN(auto names, checkpoint_names(files_, folder_));
  const auto all = files_.list(folder_);
  const bool replaced = all.ok() && std::find(all->begin(), all->end(), kReplacedName) != all->end();
  std::reverse(names.begin(), names.end());
  if (replaced) names.emplace_back(kReplacedName);
  return names;
}

absl::StatusOr<Manifest> CheckpointStore::read_manifest(const std::string& name) const {
  PL_ASSIGN_OR_RETURN(const auto text,
                      files_.read_file(str_cat(folder_, "/", name, "/", kManifestName), kMaxManifestBytes));
  PL_ASSIGN_OR_RETURN(Manifest manifest,
                      parse_manifest({reinterpret_cast<const char*>(text.data()), text.size()}));
  if (name != kReplacedName && manifest.progress.step != step_of(name)) {
    return absl::DataLossError(
        str_cat("manifest: step ", manifest.progress.step, ", the folder's name says another"));
  }
  if (manifest.files.size() != 1 || manifest.files[0].name != kStateName) {
    return absl::DataLossError(str_cat("manifest: 'files' must name ", kStateName, " alone"));
  }
  return manifest;
}

absl::StatusOr<CheckpointNote> CheckpointStore::peek_latest() const {
  PL_ASSIGN_OR_RETURN(const auto names, candidates());
  for (const std::string& name : names) {
    if (auto manifest = read_manifest(name); manifest.ok())
      return CheckpointNote{name, std::move(manifest->progress)};
  }
  return absl::NotFoundError(str_cat("no complete checkpoint in ", folder_));
}

absl::StatusOr<LoadedCheckpoint> CheckpointStore::load(const std::string& name) const {
  const std::string path = str_cat(folder_, "/", name);
  PL_ASSIGN_OR_RETURN(Manifest manifest, read_manifest(name));
  const FileEntry& entry = manifest.files[0];
  PL_ASSIGN_OR_RETURN(
      auto bytes, files_.read_file(str_cat(path, "/", kStateName), std::min(entry.bytes, kMaxStateBytes)));
  if (bytes.size() != entry.bytes) {
    return absl::DataLossError(
        str_cat(kStateName, ": ", bytes.size(), " bytes, the manifest says ", entry.bytes));
  }
  if (crc32c(bytes) != entry.crc32c) {
    return absl::DataLossError(
        str_cat(kStateName, ": its checksum isn't the manifest's: the file was altered or damaged"));
  }
  auto tensors = parse_file(std::move(bytes));
  if (!tensors.ok()) return with_context(tensors.status(), kStateName);
  LoadedCheckpoint loaded{name, std::move(manifest.progress)};
  loaded.tensors = std::move(tensors->tensors);
  loaded.bytes = std::move(tensors->bytes);
  return loaded;
}

absl::StatusOr<LoadedCheckpoint> CheckpointStore::load_latest() const {
  PL_ASSIGN_OR_RETURN(const auto names, candidates());
  std::vector<std::string> refused;
  bool damaged = false;  // one without a manifest was only never completed
  for (const std::string& name : names) {
    auto loaded = load(name);
    if (loaded.ok()) {
      loaded->refused = std::move(refused);
      return loaded;
    }
    refused.push_back(str_cat(name, ": ", loaded.status().message()));
    const auto inside = files_.list(str_cat(folder_, "/", name));
    damaged |= inside.ok() && std::find(inside->begin(), inside->end(), kManifestName) != inside->end();
  }
  std::string why;
  for (const std::string& reason : refused) why += str_cat("; ", reason);
  if (!damaged) return absl::NotFoundError(str_cat("no complete checkpoint in ", folder_, why));
  return absl::DataLossError(
      str_cat("every checkpoint in ", folder_, " is damaged; remove them to begin anew", why));
}

absl::StatusOr<std::string> CheckpointStore::newest() const {
  PL_ASSIGN_OR_RETURN(const auto names, checkpoint_names(files_, folder_));
  return names.empty() ? std::string() : names.back();
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
  auto loaded = parse_file(std::move(bytes));
  if (!loaded.ok()) return with_context(loaded.status(), path);
  return loaded;
}

absl::StatusOr<LoadedTensors> read_model(const std::string& path) {
  return read_safetensors(*make_directory_store(), path);
}

}  // namespace paceline::checkpoint
