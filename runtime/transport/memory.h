#pragma once

// Registered memory: what collectives use without a copy.
//
// An Arena belongs to the process, not to a view: it outlives every communicator, so that survivors of a
// failure keep their state (a parameter server has none to keep: Fabric::renew_arena). Its pages come from a
// memfd, which members of the same host map into each other (to read); nothing of it has a name in the file
// system, so nothing is left behind, however the process ends. Allocation is not thread-safe and happens
// before the first step; the memory itself may be used by any thread under the collectives' rules.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace paceline::transport {

// What an arena's capacity is where nobody says: twice a machine's memory, so that memory runs out first, but
// 16 GiB at least, and 256 GiB at most, for 256 members of one host map one another's. 16 GiB where the
// address space or the size of files is `limited`.
std::size_t usual_capacity(std::uint64_t machine_bytes, bool limited);
std::size_t usual_capacity();  // this machine's, under this process' limits (ulimit -v, -f)

class Arena {
 public:
  // Reserves `capacity_bytes` of address space backed by one memfd; pages are taken as they are touched.
  // RESOURCE_EXHAUSTED when the system refuses.
  static absl::StatusOr<std::unique_ptr<Arena>> create(std::size_t capacity_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` of zeroed memory aligned to `kAlignment`, owned by the arena and never freed before it.
  // RESOURCE_EXHAUSTED.
  absl::StatusOr<std::span<std::byte>> allocate(std::size_t bytes);

  // Whether [data, data + bytes) lies in this arena, and where.
  bool contains(const void* data, std::size_t bytes) const;
  std::size_t offset_of(const void* data) const;

  int fd() const { return fd_.get(); }
  std::size_t capacity() const { return capacity_; }
  std::size_t left() const { return capacity_ - used_; }

  static constexpr std::size_t kAlignment = 4096;

 private:
  Arena(UniqueFd fd, std::byte* base, std::size_t capacity);
  UniqueFd fd_;
  std::byte* base_;
  std::size_t capacity_;
  std::size_t used_ = 0;
};

}  // namespace paceline::transport
