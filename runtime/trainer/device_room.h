#pragma once

// Whether what a training keeps in its device's memory, or the host's, from step to step finds room there,
// and what to say where it does not. What passes take is the programs' own (tensor/program.h). Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/tensor/device.h"

namespace paceline::trainer {

// Bytes, by what they are called in messages; zero: there is none.
struct LastingMemory {
  std::size_t weights = 0;
  std::size_t gradient = 0;
  std::size_t state = 0;         // of the optimizer
  std::size_t half_weights = 0;  // the bf16 copy of the weights
  std::string optimizer = {};    // "AdamW"

  std::size_t total() const { return weights + gradient + state + half_weights; }
};

// Of a model of `elements` parameters, padding included. `kReads`: who evaluates only; `kCopies`: weights and
// gradient are copies of the host's, which has the optimizer; and weights once more where `evaluates` with a
// program of its own.
enum class Holding : std::uint8_t { kReads, kCopies, kCopiesAndEvaluates, kTrains };
LastingMemory lasting_memory(const v1::TrainingSpec& spec, std::size_t elements, Holding holding);

struct FoundRoom {
  tensor::MemoryRoom now;
  std::size_t free_at_begin = 0;  // before this member took anything
  std::size_t taken = 0;          // of the lasting memory, already
  std::size_t evaluation = 0;     // by passes of evaluation, where they could be of fewer samples
  std::size_t training = 0;       // by passes of training
  int members = 0;                // of the job on this device, this one included; 0: not known
};

// RESOURCE_EXHAUSTED: what needs how much, how much there is and was at the begin, who else may hold it, and
// what helps.
absl::Status check_room(const LastingMemory& needs, const FoundRoom& found);

// Likewise in the memory of this machine, of which `free` bytes are left; nothing: nobody knows.
absl::Status check_host_room(const LastingMemory& needs, std::optional<std::uint64_t> free);

// What helps where nothing smaller fits. `gpu`: or processors compute.
const char* more_memory(bool gpu);

// What a program for evaluation came to; of one that finds no room also for what, and what helps. `rows` were
// wanted. `waited`: all else of this member has its room already.
absl::Status evaluation_room(const absl::Status& compiled, std::int64_t rows, bool waited, bool gpu);

// "130 MiB were free when this member began, and 4 members of this job share the device".
std::string room_at_begin_text(std::size_t free_at_begin, int members);

}  // namespace paceline::trainer
