#pragma once

// One checkpoint on its way into its folder (CheckpointStore::begin()): parts, one after the other or several
// at once, then the state, then its name, which makes it complete. What was written of one that is never
// finished goes with its writer. One thread.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_store.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/parts.h"
#include "runtime/checkpoint/safetensors.h"

namespace paceline::checkpoint {

// What is saved beside the parts: the caller's memory, unchanged until finish() or save() returns.
struct Snapshot {
  Progress progress;
  std::vector<TensorView> tensors;  // e.g. "weights", "optimizer/momentum"
};

class CheckpointWriter {
 public:
  // CheckpointStore's: there is an empty folder of the temporary name. `replaced_may_go`: what a crash left
  // as .replaced is not the only one of its step.
  CheckpointWriter(FileStore& files, std::string folder, std::int64_t keep, bool replaced_may_go);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // A new part; it does not outlive this. REQUIRES: a name of its own, without '/', not beginning with '.';
  // fewer than kMaxCheckpointFiles.
  absl::StatusOr<std::unique_ptr<PartWriter>> begin_part(const std::string& name);
  // Makes it complete, and removes the oldest beyond `keep`. Once this returned OK the checkpoint survives a
  // crash of the machine. `parts` are what the parts' finish() said. REQUIRES: of all that were begun.
  absl::Status finish(const Snapshot& snapshot, std::span<const FileEntry> parts = {});

 private:
  absl::Status write_state(const Snapshot& snapshot, std::span<const FileEntry> parts);
  void remove_old(std::int64_t saved_step) const;
  absl::Status remove_replaced() const;

  FileStore& files_;
  const std::string folder_, saving_, replaced_;
  const std::int64_t keep_;
  bool replaced_may_go_;
  std::size_t parts_ = 0;
  bool finished_ = false;
};

}  // namespace paceline::checkpoint
