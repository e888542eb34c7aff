#pragma once

// manifest.json of a checkpoint: where training stood, and what files there must be. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace paceline::checkpoint {

inline constexpr std::int64_t kManifestVersion = 1;
inline constexpr std::uint64_t kMaxManifestBytes = 1024 * 1024;
inline constexpr std::size_t kMaxCheckpointFiles = 1024;

// Where training stands between two steps.
struct Progress {
  std::int64_t step = 0;             // updates in the weights: the next step is this one
  std::int64_t ledger_position = 0;  // samples consumed since the begin of the job (data::Ledger)
  std::int64_t schedule_step = 0;    // the learning rate's next step
  std::uint64_t seed = 0;
  std::uint64_t rng_position = 0;  // of the job's generator (base/rng.h)
  std::string spec_hash;  // of the job's training spec: a checkpoint of another job isn't loaded by accident
};

struct FileEntry {
  std::string name;  // within the checkpoint's folder: no '/'
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

struct Manifest {
  Progress progress;
  std::vector<FileEntry> files;
};

std::string encode_manifest(const Manifest& manifest);

// DATA_LOSS with the field's name, what was found and what is allowed. UNIMPLEMENTED: written by a newer
// Paceline. 64-bit numbers that JSON readers would round (seed, rng_position) are texts.
absl::StatusOr<Manifest> parse_manifest(std::string_view text);

}  // namespace paceline::checkpoint
