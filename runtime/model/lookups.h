#pragma once

// Which rows of one table a batch looks up: each row once, the ids rising, and for each occurrence where it
// is among them.
//
//   clear();  add(id), once for each occurrence;  finish();  ids(), occurrences()
//
// One thread; allocates only in its making.

#include <cstdint>
#include <span>
#include <vector>

namespace paceline::model {

class Lookups {
 public:
  // REQUIRES: 0 < max_occurrences < 2^31.
  explicit Lookups(std::int64_t max_occurrences);
  // The memory that one takes.
  static std::uint64_t bytes(std::int64_t max_occurrences);

  void clear();
  // One more occurrence. REQUIRES: fewer than max_occurrences since clear().
  void add(std::uint64_t id);
  void finish();

  // Valid from finish() to clear().
  std::span<const std::uint64_t> ids() const { return ids_; }  // each once, rising
  std::span<const std::uint32_t> occurrences() const {
    return places_;
  }  // for each add(), its place in ids()

 private:
  // Open addressing; a slot of an earlier batch counts as free.
  struct Slot {
    std::uint32_t batch = 0;
    std::uint32_t place = 0;
  };

  const std::size_t max_occurrences_;
  std::vector<Slot> slots_;  // a power of two, at least twice the occurrences
  std::uint32_t batch_ = 1;
  std::vector<std::uint64_t> ids_;  // until finish(): in the order in which they came first
  std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> order_, rank_;  // finish(): from a sorted place to that of before, and back
  std::vector<std::uint64_t> sorted_;
};

}  // namespace paceline::model
