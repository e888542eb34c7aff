#pragma once

// A check that a training's lasting memory (weights, gradient, optimizer state) fits into the memory of its
// device or of the host, and the error where it does not. On a device of its own memory programs count that
// of their passes themselves (tensor/program.h); on the host it is checked with the rest. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/tensor/device.h"

namespace paceline::trainer {

// The bytes of each vector under its name in messages; zero: there is none.
struct LastingMemory {
  std::size_t weights = 0;
  std::size_t gradient = 0;
  std::size_t state = 0;         // of the optimizer
  std::size_t half_weights = 0;  // the bf16 copy of the weights
  std::size_t passes = 0;        // of programs in the host's memory: activations, weights in other forms
  std::size_t least_passes = 0;  // the same, of one sample at a time
  std::string optimizer = {};    // "AdamW"

  std::size_t total() const { return weights + gradient + state + half_weights + passes; }
};

// A device holds weights alone (kReads: an evaluator), copies of the host's weights and gradient while the
// host has the optimizer (kCopies), those and the weights of an evaluation's own program
// (kCopiesAndEvaluates), or everything (kTrains). `elements` counts the parameters, padding included.
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

// RESOURCE_EXHAUSTED where the memory does not suffice. The message names each need, the memory that is free
// and was free at the begin, the members that share it, and what helps.
absl::Status check_room(const LastingMemory& needs, const FoundRoom& found);

// Bounds of this machine's memory for a member, in bytes; one without a value is not known, or is none.
struct HostRoom {
  std::optional<std::uint64_t> machine = std::nullopt;        // free now
  std::optional<std::uint64_t> address_space = std::nullopt;  // left of the process's limit (ulimit -v)
  // Free before the first member of the job took anything here, and the members that take as much each.
  std::optional<std::uint64_t> at_begin = std::nullopt;
  int members = 1;
};

// A member finds too little memory on this machine: the least of the bounds, and what helps beside a smaller
// model.
struct HostShortage {
  enum class Bound : std::uint8_t { kMachine, kShare, kAddressSpace };
  Bound bound = Bound::kMachine;
  std::uint64_t free = 0;  // bytes
  bool more_memory = false;
  bool higher_limit = false;  // where more_memory helps, both are needed
  bool fewer_members = false;
  bool less_state = false;
  bool smaller_passes = false;
};
// Without a value there is room.
std::optional<HostShortage> host_shortage(const LastingMemory& needs, const HostRoom& room);

// The same check for this machine's memory. RESOURCE_EXHAUSTED says host_shortage() in words.
absl::Status check_host_room(const LastingMemory& needs, const HostRoom& room);

// Advice where nothing smaller fits. `gpu`: a GPU computes, else the processors do.
const char* more_memory(bool gpu);

// The result of compiling an evaluation for `rows` samples. Where the memory does not suffice the error also
// says so of the evaluation, with what helps. `waited`: training has its memory already.
absl::Status evaluation_room(const absl::Status& compiled, std::int64_t rows, bool waited, bool gpu);

// Says "130 MiB were free when this member began, and 4 members of this job share the device".
std::string room_at_begin_text(std::size_t free_at_begin, int members);

}  // namespace paceline::trainer
