#pragma once

// Memory for tables: zeroed, aligned to 2 MiB, and in pages of that size where the system has them, so that
// a table of gigabytes does not miss in the processor's address translation at every row. Pages are taken as
// they are touched. Owned; moves.

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/statusor.h"

namespace paceline::pserver::sparse {

class HugeBlock {
 public:
  // RESOURCE_EXHAUSTED: the system refuses.
  static absl::StatusOr<HugeBlock> create(std::size_t bytes);
  HugeBlock(HugeBlock&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  HugeBlock& operator=(HugeBlock&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~HugeBlock();

  std::byte* data() const { return base_; }
  std::size_t size() const { return size_; }

  static constexpr std::size_t kPage = std::size_t{2} << 20;

 private:
  HugeBlock(std::byte* base, std::size_t size) : base_(base), size_(size) {}
  std::byte* base_;
  std::size_t size_;
};

}  // namespace paceline::pserver::sparse
