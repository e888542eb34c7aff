#include "runtime/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "runtime/checkpoint/layout.h"
#include "runtime/checkpoint/safetensors_file.h"

// Saving, and what a crash after each operation leaves:
//   1. write the parts and state.safetensors into .saving (each synced)    a hidden folder, removed by the
//      next save
//   2. write .saving/manifest.json (synced), sync .saving
//   3. rename .saving to step-N, sync the folder    complete: step-N counts from here
//   4. remove the oldest beyond `keep`              its manifest first, so that half a removal is refused
// A step that is saved again is renamed to .replaced before 3 and removed in 4. In between .replaced is the
// checkpoint of its step for whoever reads, and the next save gives it its name back where that is free: so
// there is a checkpoint at every moment, even with keep = 1, and none that was complete is lost. It is
// removed under another name, so that a crash leaves no half of it that would look like a damaged one: one of
// these stays until its name is needed.

namespace paceline::checkpoint {

namespace {

FileEntry describe(std::string name, const Pieces& pieces) {
  FileEntry entry{std::move(name)};
  for (const auto& piece : pieces) {
    entry.bytes += piece.size();
    entry.crc32c = crc32c(piece, entry.crc32c);
  }
  return entry;
}

}  // namespace

CheckpointWriter::CheckpointWriter(FileStore& files, std::string folder, std::int64_t keep,
                                   bool replaced_may_go)
    : files_(files),
      folder_(std::move(folder)),
      saving_(str_cat(folder_, "/", kSavingName)),
      replaced_(str_cat(folder_, "/", kReplacedName)),
      keep_(keep),
      replaced_may_go_(replaced_may_go) {}

CheckpointWriter::~CheckpointWriter() {
  if (!finished_) files_.remove(saving_).IgnoreError();  // a full disk gets its room back
}

absl::StatusOr<std::unique_ptr<PartWriter>> CheckpointWriter::begin_part(const std::string& name) {
  PL_CHECK(!name.empty() && name[0] != '.' && name.find('/') == std::string::npos && name != kStateName &&
               name != kManifestName,
           "a part has a file name of its own");
  ++parts_;
  PL_CHECK(parts_ < kMaxCheckpointFiles, "a checkpoint has no more files than a manifest may name");
  PL_ASSIGN_OR_RETURN(auto file, files_.create_file(str_cat(saving_, "/", name)));
  return std::make_unique<PartWriter>(std::move(file), name);
}

absl::Status CheckpointWriter::write_state(const Snapshot& snapshot, std::span<const FileEntry> parts) {
  std::string header;
  PL_ASSIGN_OR_RETURN(const Pieces state, pieces_of(snapshot.tensors, {}, header));
  PL_RETURN_IF_ERROR(files_.write_file(str_cat(saving_, "/", kStateName), state));
  Manifest manifest{snapshot.progress, {describe(kStateName, state)}};
  manifest.files.insert(manifest.files.end(), parts.begin(), parts.end());
  const std::string text = encode_manifest(manifest);
  PL_RETURN_IF_ERROR(files_.write_file(str_cat(saving_, "/", kManifestName), Pieces{text_bytes(text)}));
  return files_.sync_folder(saving_);
}

absl::Status CheckpointWriter::finish(const Snapshot& snapshot, std::span<const FileEntry> parts) {
  PL_CHECK(snapshot.progress.step >= 0, "steps count from 0");
  PL_CHECK(parts.size() == parts_ && !finished_, "a checkpoint is finished once, when all its parts are");
  const std::string name = checkpoint_name(snapshot.progress.step);
  const std::string target = str_cat(folder_, "/", name);
  PL_RETURN_IF_ERROR(
      with_context(write_state(snapshot, parts), str_cat("checkpoint of step ", snapshot.progress.step)));
  PL_ASSIGN_OR_RETURN(const auto names, checkpoint_names(files_, folder_));
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    PL_RETURN_IF_ERROR(remove_replaced());
    PL_RETURN_IF_ERROR(files_.rename(target, replaced_));
    replaced_may_go_ = true;
  }
  PL_RETURN_IF_ERROR(files_.rename(saving_, target));
  finished_ = true;
  PL_RETURN_IF_ERROR(files_.sync_folder(folder_));
  remove_old(snapshot.progress.step);
  return absl::OkStatus();
}

absl::Status CheckpointWriter::remove_replaced() const {
  const std::string removed = str_cat(folder_, "/", kRemovedName);
  const absl::Status renamed = files_.rename(replaced_, removed);
  if (absl::IsNotFound(renamed)) return absl::OkStatus();
  PL_RETURN_IF_ERROR(renamed);
  PL_RETURN_IF_ERROR(files_.sync_folder(folder_));
  return files_.remove(removed);
}

// The new checkpoint is safe; what can't be removed now is removed after the next save.
void CheckpointWriter::remove_old(std::int64_t saved_step) const {
  if (replaced_may_go_) remove_replaced().IgnoreError();
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

}  // namespace paceline::checkpoint
