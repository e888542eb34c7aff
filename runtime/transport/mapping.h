#pragma once

// A peer's memory, mapped here. Movable; the mapping ends with it.

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace paceline::transport {

class Mapping {
 public:
  enum class Access { kRead, kReadWrite };
  // The whole of a memfd, as large as it is now; nothing of an empty one. INVALID_ARGUMENT when it could
  // still be cut short under us (it must be sealed), RESOURCE_EXHAUSTED.
  static absl::StatusOr<Mapping> of(const UniqueFd& fd, Access access);
  Mapping() = default;
  Mapping(Mapping&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Mapping();

  std::span<std::byte> memory() const { return memory_; }

 private:
  std::span<std::byte> memory_;
};

// A new memfd of `bytes` zero bytes, which is sealed: it grows, and is never cut. RESOURCE_EXHAUSTED.
absl::StatusOr<UniqueFd> make_shared_memory(const char* name, std::size_t bytes);
absl::Status grow_shared_memory(const UniqueFd& fd, std::size_t bytes);

}  // namespace paceline::transport
