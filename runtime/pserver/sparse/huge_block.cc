#include "runtime/pserver/sparse/huge_block.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/status.h"

namespace paceline::pserver::sparse {

absl::StatusOr<HugeBlock> HugeBlock::create(std::size_t bytes) {
  const std::size_t size = (bytes + kPage - 1) / kPage * kPage;
  const std::size_t reserved = size + kPage;
  void* const memory =
      ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        str_cat("no memory for ", size, " bytes of a sparse table: ", std::strerror(errno)));
  }
  auto* const begin = static_cast<std::byte*>(memory);
  const std::size_t before = (kPage - reinterpret_cast<std::uintptr_t>(begin) % kPage) % kPage;
  if (before > 0) (void)::munmap(begin, before);
  if (before < kPage) (void)::munmap(begin + before + size, kPage - before);
  (void)::madvise(begin + before, size, MADV_HUGEPAGE);  // where it is refused: ordinary pages
  return HugeBlock(begin + before, size);
}

HugeBlock::~HugeBlock() {
  if (base_ != nullptr) (void)::munmap(base_, size_);
}

}  // namespace paceline::pserver::sparse
