#pragma once

// What a server holds, in its fabric's arena: weights in one or more buffers, so that nobody ever reads a
// torn version, and for each worker the memory that its gradient needs here.
//
// A worker that is given the weights borrows the buffer that holds them until it has read them. The next
// version is made in place where nobody borrows, else in another buffer: at most one more than there are
// workers, each taken from the arena when it is first needed. One thread. RESOURCE_EXHAUSTED: the arena is
// full.

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/transport/memory.h"

namespace paceline::pserver {

// The most vectors, each as long as the share, that a slab takes until its server ends.
struct SlabNeed {
  std::size_t weights = 1, gradients = 0, kept = 0, read = 0, copies = 0;
  std::size_t vectors() const { return weights + gradients + kept + read + copies; }
};

class Slab {
 public:
  Slab(transport::Arena& arena, std::size_t elements, int workers);
  // Whether the arena has so much left: else training would end in the middle. The error says of what it is.
  absl::Status check(const SlabNeed& need) const;
  // Takes the first buffer of weights.
  absl::Status open();

  std::size_t elements() const { return elements_; }
  std::span<float> weights() { return buffers_[current_].memory; }
  // Where the present weights lie in the arena.
  std::size_t offset() const { return arena_.offset_of(buffers_[current_].memory.data()); }

  void lend(int worker);
  // The memory of next(), which is not made yet, to one that will have to read it.
  void lend_next(int worker);
  bool borrows(int worker) const { return borrowed_[static_cast<std::size_t>(worker)] >= 0; }
  void give_back(int worker);

  // The memory of the next version, which becomes weights() at next_is_made(); maybe weights() itself.
  absl::StatusOr<std::span<float>> next();
  std::size_t next_offset() const { return arena_.offset_of(buffers_[next_].memory.data()); }
  void next_is_made() { current_ = next_; }

  // Per worker, each as long as the share, taken when first asked for.
  enum class Use { kGradient = 0, kKept = 1, kRead = 2 };  // arriving; waiting beside it; the weights it read
  absl::StatusOr<std::span<float>> of_worker(int worker, Use use);
  // Vector k of a snapshot, likewise.
  absl::StatusOr<std::span<float>> copy(std::size_t k);
  std::size_t offset_of(std::span<const float> memory) const {
    return memory.empty() ? 0 : arena_.offset_of(memory.data());
  }
  std::size_t buffers() const { return buffers_.size(); }

 private:
  struct Buffer {
    std::span<float> memory;
    int borrowers = 0;
  };
  void lend_buffer(int worker, std::size_t buffer);
  absl::StatusOr<std::span<float>> take();
  absl::StatusOr<std::span<float>> first_time(std::span<float>& memory);

  transport::Arena& arena_;
  const std::size_t elements_;
  std::vector<Buffer> buffers_;
  std::size_t current_ = 0, next_ = 0;
  std::vector<int> borrowed_;  // by worker: the buffer, or -1
  std::vector<std::span<float>> of_workers_, copies_;
};

}  // namespace paceline::pserver
