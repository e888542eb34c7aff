#pragma once

// Registered memory, which collectives use without a copy.
//
// An Arena belongs to the process, not to a view: it outlives every communicator, so that survivors of a
// failure keep their state (a parameter server has none to keep: Fabric::renew_arena). Its pages come from a
// memfd, which members of the same host map into each other (to read), as large as it is when they meet;
// nothing of it has a name in the file system, so nothing is left behind, however the process ends.
// Allocation is not thread-safe; the memory itself may be used by any thread under the collectives' rules.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace paceline::transport {

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// An arena's capacity by default: twice the machine's memory, so that memory runs out first. It is at least
// 16 GiB, and at most 256 GiB, since 256 members of one host map one another's arenas. It is at most half of
// `limit`, the bytes that the process may map or write to a file.
std::size_t usual_capacity(std::uint64_t machine_bytes, std::uint64_t limit);
std::size_t usual_capacity();  // this machine's, under this process' limits (ulimit -v, -f)

class Arena {
 public:
  // Makes an arena of at most `capacity_bytes`. It takes address space as memory is allocated or reserved,
  // and pages as they are touched. RESOURCE_EXHAUSTED when the system refuses.
  static absl::StatusOr<std::unique_ptr<Arena>> create(std::size_t capacity_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Gives `bytes` of zeroed memory aligned to `kAlignment`, owned by the arena and never freed before it.
  // RESOURCE_EXHAUSTED.
  absl::StatusOr<std::span<std::byte>> allocate(std::size_t bytes);
  // Takes the address space of the whole rest, or a part of it (1 / `parts`) where the process's address
  // space is limited. So a process that meets this one from now on also maps later allocations. The arena has
  // no more than that then. RESOURCE_EXHAUSTED.
  absl::Status reserve(int parts);

  // True where [data, data + bytes) lies in this arena.
  bool contains(const void* data, std::size_t bytes) const;
  // The place of `data` in this arena. A null pointer, as allocate(0) gives it, is at 0. REQUIRES:
  // contains().
  std::size_t offset_of(const void* data) const;

  int fd() const { return fd_.get(); }
  std::size_t capacity() const { return capacity_; }
  std::size_t left() const { return capacity_ - used_; }
  std::size_t mapped() const { return mapped_; }  // bytes from its begin that peers map now

  static constexpr std::size_t kAlignment = 4096;

 private:
  // One mapped part of the memfd.
  struct Block {
    std::byte* base;
    std::size_t begin, bytes;
  };
  Arena(UniqueFd fd, std::size_t capacity) : fd_(std::move(fd)), capacity_(capacity) {}
  absl::Status map(std::size_t bytes);
  const Block* block_of(const void* data) const;

  UniqueFd fd_;
  std::size_t capacity_;
  std::size_t used_ = 0, mapped_ = 0;  // the last block alone may have a rest
  std::vector<Block> blocks_;
};

}  // namespace paceline::transport
