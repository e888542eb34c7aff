#include "runtime/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/checkpoint/layout.h"

namespace paceline::checkpoint {

namespace {

constexpr std::size_t kMostReasons = 10;  // in one message

absl::Status not_read(const absl::Status& why, const std::string& folder, const std::string& name) {
  return with_context(why, str_cat(folder, "/", name, " can't be read"));
}

// Those that are passed over, and what is to be said where no other is left.
class Refusals {
 public:
  Refusals(const FileStore& files, const std::string& folder) : files_(files), folder_(folder) {}

  // An error: it is not known whether it is damaged.
  absl::Status add(const std::string& name, const absl::Status& why) {
    if (is_no_fault_of_it(why)) return not_read(why, folder_, name);
    const char* const which = name == kReplacedName ? " (newer or not: its step is not known)" : "";
    reasons_.push_back(str_cat(name, which, ": ", why.message()));
    const auto inside = files_.list(str_cat(folder_, "/", name));
    if (is_no_fault_of_it(inside.status())) return not_read(inside.status(), folder_, name);
    any_ |= !absl::IsNotFound(inside.status());  // else who saves meanwhile has removed it
    damaged_ |= inside.ok() && std::find(inside->begin(), inside->end(), kManifestName) != inside->end();
    return absl::OkStatus();
  }

  std::vector<std::string> take() { return std::move(reasons_); }

  absl::Status none_left() const {
    std::string why;
    for (std::size_t i = 0; i < std::min(reasons_.size(), kMostReasons); ++i)
      why += str_cat("; ", reasons_[i]);
    if (reasons_.size() > kMostReasons) why += str_cat("; and ", reasons_.size() - kMostReasons, " more");
    if (!any_) return absl::NotFoundError(str_cat("no complete checkpoint in ", folder_, why));
    if (!damaged_) {
      return absl::FailedPreconditionError(
          str_cat("no checkpoint in ", folder_,
                  " has its manifest.json; put it back, or remove them to begin anew", why));
    }
    return absl::DataLossError(
        str_cat("every checkpoint in ", folder_, " is damaged; remove them to begin anew", why));
  }

 private:
  const FileStore& files_;
  const std::string& folder_;
  std::vector<std::string> reasons_;
  bool any_ = false, damaged_ = false;
};

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
  files_.remove(str_cat(folder_, "/", kRemovedName)).IgnoreError();  // who needs the name says so
  PL_ASSIGN_OR_RETURN(const bool replaced_may_go, put_back_replaced());
  auto writer = std::make_unique<CheckpointWriter>(files_, folder_, keep_, replaced_may_go);
  PL_RETURN_IF_ERROR(files_.make_folder(saving));
  return writer;
}

absl::Status CheckpointStore::save(const Snapshot& snapshot) {
  PL_ASSIGN_OR_RETURN(const auto writer, begin());
  return writer->finish(snapshot);
}

absl::StatusOr<CheckpointStore::Candidates> CheckpointStore::candidates() const {
  Candidates all;
  PL_ASSIGN_OR_RETURN(all.names, checkpoint_names(files_, folder_));
  std::reverse(all.names.begin(), all.names.end());
  const auto inside = files_.list(folder_);
  if (absl::IsNotFound(inside.status())) return all;
  PL_RETURN_IF_ERROR(inside.status());
  if (std::find(inside->begin(), inside->end(), kReplacedName) == inside->end()) return all;
  const std::string replaced = str_cat(folder_, "/", kReplacedName);
  const auto manifest = read_manifest(kReplacedName);
  if (is_no_fault_of_it(manifest.status())) return not_read(manifest.status(), folder_, kReplacedName);
  if (manifest.ok()) {
    const std::int64_t step = manifest->progress.step;
    const auto older = std::find_if(all.names.begin(), all.names.end(),
                                    [step](const auto& name) { return step_of(name) < step; });
    all.names.insert(older, kReplacedName);
  } else if (!absl::IsNotFound(files_.list(replaced).status())) {  // else it was just removed
    all.replaced = manifest.status();
  }
  return all;
}

absl::StatusOr<bool> CheckpointStore::put_back_replaced() {
  const std::string replaced = str_cat(folder_, "/", kReplacedName);
  const auto manifest = read_manifest(kReplacedName);
  if (is_no_fault_of_it(manifest.status())) return not_read(manifest.status(), folder_, kReplacedName);
  if (!manifest.ok()) return absl::IsNotFound(files_.list(replaced).status());
  const std::string name = checkpoint_name(manifest->progress.step);
  PL_ASSIGN_OR_RETURN(const auto names, checkpoint_names(files_, folder_));
  if (std::find(names.begin(), names.end(), name) != names.end()) return true;
  PL_RETURN_IF_ERROR(files_.rename(replaced, str_cat(folder_, "/", name)));
  return true;
}

absl::StatusOr<Manifest> CheckpointStore::read_manifest(const std::string& name) const {
  auto text = files_.read_file(str_cat(folder_, "/", name, "/", kManifestName), kMaxManifestBytes);
  if (absl::IsNotFound(text.status())) return absl::NotFoundError("it has no manifest.json");
  PL_RETURN_IF_ERROR(text.status());
  PL_ASSIGN_OR_RETURN(Manifest manifest,
                      parse_manifest({reinterpret_cast<const char*>(text->data()), text->size()}));
  if (name != kReplacedName && manifest.progress.step != step_of(name)) {
    return absl::DataLossError(str_cat("manifest: step ", manifest.progress.step,
                                       ", the folder's name says another; it was saved as ",
                                       checkpoint_name(manifest.progress.step)));
  }
  if (manifest.files[0].name != kStateName) {
    return absl::DataLossError(str_cat("manifest: 'files' must name ", kStateName, " first"));
  }
  return manifest;
}

absl::StatusOr<CheckpointNote> CheckpointStore::peek_latest() const {
  PL_ASSIGN_OR_RETURN(const Candidates all, candidates());
  Refusals refused(files_, folder_);
  if (!all.replaced.ok()) PL_RETURN_IF_ERROR(refused.add(kReplacedName, all.replaced));
  for (const std::string& name : all.names) {
    auto manifest = read_manifest(name);
    if (manifest.ok()) {
      std::uint64_t bytes = 0;
      for (const FileEntry& file : manifest->files) bytes += file.bytes;
      return CheckpointNote{name, std::move(manifest->progress), refused.take(), bytes};
    }
    PL_RETURN_IF_ERROR(refused.add(name, manifest.status()));
  }
  return refused.none_left();
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
  PL_ASSIGN_OR_RETURN(const Candidates all, candidates());
  absl::Status stopped;  // no fault of the checkpoint that was being read
  const GoOn ask = [&] {
    if (go_on != nullptr) stopped = go_on();
    return stopped;
  };
  Refusals refused(files_, folder_);
  if (!all.replaced.ok()) PL_RETURN_IF_ERROR(refused.add(kReplacedName, all.replaced));
  for (const std::string& name : all.names) {
    auto loaded = load(name, ask);
    if (!stopped.ok()) return stopped;
    if (loaded.ok()) {
      loaded->refused = refused.take();
      return loaded;
    }
    PL_RETURN_IF_ERROR(refused.add(name, loaded.status()));
  }
  return refused.none_left();
}

absl::StatusOr<std::string> CheckpointStore::newest() const {
  PL_ASSIGN_OR_RETURN(const Candidates all, candidates());
  if (!all.names.empty()) return all.names.front();
  return all.replaced.ok() ? std::string() : std::string(kReplacedName);
}

}  // namespace paceline::checkpoint
