#pragma once

// Parts of a checkpoint: files beside its state, for what is larger than memory. They are written and read
// from begin to end, piece by piece; nothing is kept here. What a part must be is in the manifest, so that
// one that was damaged is told from one that was not. One thread each.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_store.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"

namespace paceline::checkpoint {

class PartWriter {
 public:
  PartWriter(std::unique_ptr<FileWriter> file, std::string name)
      : file_(std::move(file)), entry_{std::move(name)} {}

  // RESOURCE_EXHAUSTED: the disk is full.
  absl::Status append(std::span<const std::byte> bytes);
  // Syncs it. What the manifest says of it. Nothing is appended after it.
  absl::StatusOr<FileEntry> finish();

 private:
  const std::unique_ptr<FileWriter> file_;
  FileEntry entry_;
};

// Asked now and then by what takes long: an error ends it.
using GoOn = std::function<absl::Status()>;

class PartReader {
 public:
  // `entry` is the manifest's.
  PartReader(std::unique_ptr<FileReader> file, FileEntry entry)
      : file_(std::move(file)), entry_(std::move(entry)) {}

  const FileEntry& entry() const { return entry_; }
  std::uint64_t left() const { return entry_.bytes - at_; }
  // All of `out`. DATA_LOSS, with the part's name: fewer bytes are left; with the last byte: the file is
  // longer than the manifest says, or has another checksum.
  absl::Status read(std::span<std::byte> out);
  // All that is left. DATA_LOSS: as read(), before memory is taken where the file has another size.
  // RESOURCE_EXHAUSTED: no memory. `go_on`, unless null, is asked before each MiB: its error is the result.
  absl::StatusOr<std::vector<std::byte>> read_rest(const GoOn& go_on);

 private:
  absl::Status check_end();

  const std::unique_ptr<FileReader> file_;
  const FileEntry entry_;
  std::uint64_t at_ = 0;
  std::uint32_t crc32c_ = 0;
};

// Reads all of it. `go_on`, unless null, is asked before each MiB: its error is the result.
absl::Status check_part(PartReader& part, const GoOn& go_on = nullptr);

// The header of a part that is a safetensors file; its data comes next. DATA_LOSS, UNIMPLEMENTED:
// parse_header(), with the part's name. REQUIRES: nothing of it was read.
absl::StatusOr<SafetensorsHeader> read_header(PartReader& part);

}  // namespace paceline::checkpoint
