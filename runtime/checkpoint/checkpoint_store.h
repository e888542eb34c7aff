#pragma once

// Checkpoints of one job in one folder, and the final model. The layout is described in docs/checkpoints.md.
//
//   <folder>/step-000000123/table-deep.safetensors    parts: what is larger than memory, if there is such
//                          /state.safetensors         weights and optimizer state
//                          /manifest.json             written last
//
// A checkpoint is written into a hidden temporary folder, synced and renamed, so that a crash at any moment
// leaves the checkpoints before it intact; load_latest() verifies sizes and checksums and falls back to the
// next older one. One writer per folder at a time (rank 0); any number of readers. Not thread-safe.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/file_store.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/parts.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/safetensors_file.h"

namespace paceline::checkpoint {

struct LoadedCheckpoint {
  std::string name;  // "step-000000123"
  Progress progress;
  std::vector<TensorView> tensors;  // into `bytes`
  std::vector<std::byte> bytes;
  std::vector<FileEntry> parts;  // beside the state: CheckpointStore::open_part()
  std::vector<std::string>
      refused;  // newer ones that were passed over, and why: "step-000000124: state.safetensors: ..."

  // Null where there is none of that name.
  const TensorView* find(std::string_view name) const;
  // Copies tensor `name` into `out`. DATA_LOSS, with both shapes or sizes, where it is missing or of another
  // dtype or size.
  absl::Status copy_to(std::string_view name, DType dtype, std::span<std::byte> out) const;
};

// What a checkpoint says of itself.
struct CheckpointNote {
  std::string name;  // "step-000000123"
  Progress progress;
  std::vector<std::string> refused;  // newer ones, and why: "step-000000124: manifest: ..."
  std::uint64_t bytes = 0;           // of the files that its manifest names
};

// Whether a checkpoint could not be read for a reason that says nothing of it: who may not read it, or has no
// memory for it or no file descriptor, does not know whether it is damaged, and takes no older one for it.
bool is_no_fault_of_it(const absl::Status& status);

// Where a folder has the checkpoint of a step: "<folder>/step-000000123".
std::string checkpoint_path(const std::string& folder, std::int64_t step);

class CheckpointStore {
 public:
  // `keep` >= 1: how many of the newest complete ones stay after a save.
  CheckpointStore(std::string folder, std::int64_t keep);
  // `files` outlives the store.
  CheckpointStore(FileStore& files, std::string folder, std::int64_t keep);
  ~CheckpointStore();

  // Saves, then removes the oldest beyond `keep` and what crashed writers left. Once this returned OK the
  // checkpoint survives a crash of the machine. Saving a step again replaces it. Checkpoints of later steps
  // (damaged ones that load_latest() passed over) neither count nor go. On an error the checkpoints before
  // are as they were.
  absl::Status save(const Snapshot& snapshot);

  // The same for one with parts, which are written first. The writer does not outlive the store; one at a
  // time.
  absl::StatusOr<std::unique_ptr<CheckpointWriter>> begin();

  // Whether a save could begin: makes the folder, and one in it that goes again.
  absl::Status check_writable();

  // The newest complete checkpoint. NOT_FOUND: there is none, not even a damaged one. FAILED_PRECONDITION:
  // there are some, and none has a manifest; DATA_LOSS: there are some, and all are damaged; both say how.
  // is_no_fault_of_it(): one that may be it can't be read. Others: the folder can't be listed. All of its
  // parts are read once, to know that they are whole; `go_on`, unless null, is asked before each MiB of them
  // and of its state: its error is the result.
  absl::StatusOr<LoadedCheckpoint> load_latest(const GoOn& go_on = nullptr) const;

  // The one of that name. NOT_FOUND: it has no manifest; else what load_latest() would pass it over for.
  absl::StatusOr<LoadedCheckpoint> load(const std::string& name, const GoOn& go_on = nullptr) const;

  // A part of what load_latest() returned, which may outlive the store. DATA_LOSS: it has none of that name;
  // NOT_FOUND: it was removed since.
  absl::StatusOr<std::unique_ptr<PartReader>> open_part(const LoadedCheckpoint& loaded,
                                                        std::string_view name) const {
    return open_part(loaded.name, loaded.parts, name);
  }
  // Of the checkpoint of that name, whose parts are known.
  absl::StatusOr<std::unique_ptr<PartReader>> open_part(const std::string& checkpoint,
                                                        std::span<const FileEntry> parts,
                                                        std::string_view name) const;

  // The newest whose manifest is whole, and what newer ones lack; its state is not looked at, so that
  // load_latest() may still pass it over. Errors: as load_latest().
  absl::StatusOr<CheckpointNote> peek_latest() const;

  // The name of the newest one, complete or not; empty: there is none. It need not be step-*: a crash may
  // leave the only one as .replaced.
  absl::StatusOr<std::string> newest() const;

 private:
  struct Candidates {
    std::vector<std::string> names;  // newest first; one that was to be replaced is among them by its step
    absl::Status replaced;  // why its step is not known, if so: it may be the newest, and is none of them
  };
  // All that may be complete.
  absl::StatusOr<Candidates> candidates() const;
  // What a crash left without its name gets it back, so that it counts as the others do. False: it is
  // damaged, and stays for who can mend it.
  absl::StatusOr<bool> put_back_replaced();
  absl::StatusOr<Manifest> read_manifest(const std::string& name) const;
  absl::StatusOr<std::unique_ptr<PartReader>> open_part_of(const std::string& checkpoint,
                                                           const FileEntry& entry) const;

  std::unique_ptr<FileStore> own_files_;
  FileStore& files_;
  const std::string folder_;
  const std::int64_t keep_;
};

}  // namespace paceline::checkpoint
