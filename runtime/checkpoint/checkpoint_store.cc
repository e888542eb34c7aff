#include "runtime/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/checkpoint/layout.h"

namespace paceline::checkpoint {

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
  return str_cat(folder, "/", checkpoint_name(step));
}

bool is_no_fault_of_it(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status);
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

absl::Status CheckpointStore::check_writable() {
  const std::string saving = str_cat(folder_, "/", kSavingName);
  PL_RETURN_IF_ERROR(files_.make_folder(folder_));
  PL_RETURN_IF_ERROR(files_.remove(saving));
  PL_RETURN_IF_ERROR(files_.make_folder(saving));
  return files_.remove(saving);
}

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointStore::begin() {
  const std::string saving = str_cat(folder_, "/", kSavingName);
  PL_RETURN_IF_ERROR(files_.make_folder(folder_));
  PL_RETURN_IF_ERROR(files_.remove(saving));
  PL_RETURN_IF_ERROR(put_back_replaced());
  auto writer = std::make_unique<CheckpointWriter>(files_, folder_, keep_);
  PL_RETURN_IF_ERROR(files_.make_folder(saving));
  return writer;
}

absl::Status CheckpointStore::save(const Snapshot& snapshot) {
  PL_ASSIGN_OR_RETURN(const auto writer, begin());
  return writer->finish(snapshot);
}

absl::StatusOr<std::vector<std::string>> CheckpointStore::candidates() const {
  PL_ASSIGN_OR_RETURN(auto names, checkpoint_names(files_, folder_));
  std::reverse(names.begin(), names.end());
  const auto all = files_.list(folder_);
  if (absl::IsNotFound(all.status())) return names;
  if (!all.ok()) return all.status();
  if (std::find(all->begin(), all->end(), kReplacedName) == all->end()) return names;
  const auto manifest = read_manifest(kReplacedName);
  if (is_no_fault_of_it(manifest.status())) return not_read(manifest.status(), kReplacedName);
  const std::int64_t step = manifest.ok() ? manifest->progress.step : -1;
  const auto older =
      std::find_if(names.begin(), names.end(), [step](const auto& name) { return step_of(name) < step; });
  names.insert(older, kReplacedName);
  return names;
}

absl::Status CheckpointStore::put_back_replaced() {
  const auto manifest = read_manifest(kReplacedName);
  if (is_no_fault_of_it(manifest.status())) return not_read(manifest.status(), kReplacedName);
  if (!manifest.ok()) return absl::OkStatus();
  const std::string name = checkpoint_name(manifest->progress.step);
  PL_ASSIGN_OR_RETURN(const auto names, checkpoint_names(files_, folder_));
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return files_.rename(str_cat(folder_, "/", kReplacedName), str_cat(folder_, "/", name));
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
  if (manifest.files[0].name != kStateName) {
    return absl::DataLossError(str_cat("manifest: 'files' must name ", kStateName, " first"));
  }
  return manifest;
}

absl::Status CheckpointStore::not_read(const absl::Status& why, const std::string& name) const {
  return with_context(why, str_cat(folder_, "/", name, " can't be read"));
}

absl::StatusOr<CheckpointNote> CheckpointStore::peek_latest() const {
  PL_ASSIGN_OR_RETURN(const auto names, candidates());
  std::vector<std::string> refused;
  for (const std::string& name : names) {
    auto manifest = read_manifest(name);
    if (manifest.ok()) return CheckpointNote{name, std::move(manifest->progress), std::move(refused)};
    if (is_no_fault_of_it(manifest.status())) return not_read(manifest.status(), name);
    refused.push_back(str_cat(name, ": ", manifest.status().message()));
  }
  return absl::NotFoundError(str_cat("no complete checkpoint in ", folder_));
}

absl::StatusOr<LoadedCheckpoint> CheckpointStore::load(const std::string& name, const GoOn& go_on) const {
  PL_ASSIGN_OR_RETURN(Manifest manifest, read_manifest(name));
  if (manifest.files[0].bytes > kMaxStateBytes) {
    return absl::FailedPreconditionError(
        str_cat(kStateName, " has ", manifest.files[0].bytes, " bytes; allowed: ", kMaxStateBytes));
  }
  PL_ASSIGN_OR_RETURN(const auto state, open_part_of(name, manifest.files[0]));
  PL_ASSIGN_OR_RETURN(auto bytes, state->read_rest(go_on));
  auto tensors = parse_safetensors(std::move(bytes));
  if (!tensors.ok()) return with_context(tensors.status(), kStateName);
  for (std::size_t k = 1; k < manifest.files.size(); ++k) {
    PL_ASSIGN_OR_RETURN(const auto part, open_part_of(name, manifest.files[k]));
    PL_RETURN_IF_ERROR(check_part(*part, go_on));
  }
  LoadedCheckpoint loaded{name, std::move(manifest.progress)};
  loaded.tensors = std::move(tensors->tensors);
  loaded.bytes = std::move(tensors->bytes);
  loaded.parts.assign(manifest.files.begin() + 1, manifest.files.end());
  return loaded;
}

absl::StatusOr<std::unique_ptr<PartReader>> CheckpointStore::open_part_of(const std::string& checkpoint,
                                                                          const FileEntry& entry) const {
  PL_ASSIGN_OR_RETURN(auto file, files_.open_file(str_cat(folder_, "/", checkpoint, "/", entry.name)));
  return std::make_unique<PartReader>(std::move(file), entry);
}

absl::StatusOr<std::unique_ptr<PartReader>> CheckpointStore::open_part(const std::string& checkpoint,
                                                                       std::span<const FileEntry> parts,
                                                                       std::string_view name) const {
  const auto entry =
      std::find_if(parts.begin(), parts.end(), [name](const FileEntry& part) { return part.name == name; });
  if (entry == parts.end())
    return absl::DataLossError(str_cat(checkpoint, ": there is no part '", name, "'"));
  return open_part_of(checkpoint, *entry);
}

absl::StatusOr<LoadedCheckpoint> CheckpointStore::load_latest(const GoOn& go_on) const {
  PL_ASSIGN_OR_RETURN(const auto names, candidates());
  absl::Status stopped;  // no fault of the checkpoint that was being read
  const GoOn ask = [&] {
    if (go_on != nullptr) stopped = go_on();
    return stopped;
  };
  std::vector<std::string> refused;
  bool damaged = false;  // one without a manifest was only never completed
  for (const std::string& name : names) {
    auto loaded = load(name, ask);
    if (!stopped.ok()) return stopped;
    if (loaded.ok()) {
      loaded->refused = std::move(refused);
      return loaded;
    }
    if (is_no_fault_of_it(loaded.status())) return not_read(loaded.status(), name);
    refused.push_back(str_cat(name, ": ", loaded.status().message()));
    const auto inside = files_.list(str_cat(folder_, "/", name));
    if (is_no_fault_of_it(inside.status())) return not_read(inside.status(), name);
    damaged |= inside.ok() && std::find(inside->begin(), inside->end(), kManifestName) != inside->end();
  }
  std::string why;
  for (const std::string& reason : refused) why += str_cat("; ", reason);
  if (!damaged) return absl::NotFoundError(str_cat("no complete checkpoint in ", folder_, why));
  return absl::DataLossError(
      str_cat("every checkpoint in ", folder_, " is damaged; remove them to begin anew", why));
}

absl::StatusOr<std::string> CheckpointStore::newest() const {
  PL_ASSIGN_OR_RETURN(const auto names, candidates());
  return names.empty() ? std::string() : names.front();
}

}  // namespace paceline::checkpoint
