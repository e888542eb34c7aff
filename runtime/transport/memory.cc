#include "runtime/transport/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "runtime/transport/mapping.h"

namespace paceline::transport {

namespace {

// The process's limit on address space or on files; this memory is a file, too.
std::uint64_t limit_of_process() {
  std::uint64_t least = RLIM_INFINITY;
  for (const auto resource : {RLIMIT_AS, RLIMIT_FSIZE}) {
    struct rlimit limit {};
    if (::getrlimit(resource, &limit) == 0) least = std::min<std::uint64_t>(least, limit.rlim_cur);
  }
  return least;
}

}  // namespace

std::size_t usual_capacity(std::uint64_t machine_bytes, std::uint64_t limit) {
  constexpr std::uint64_t kLeast = std::uint64_t{16} << 30, kMost = std::uint64_t{256} << 30;
  return std::min(std::clamp(std::min(machine_bytes, kMost) * 2, kLeast, kMost), limit / 2);
}

std::size_t usual_capacity() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  const std::uint64_t bytes = pages > 0 && page_bytes > 0
                                  ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes)
                                  : 0;
  return usual_capacity(bytes, limit_of_process());
}

absl::StatusOr<std::unique_ptr<Arena>> Arena::create(std::size_t capacity_bytes) {
  const std::size_t capacity = round_up(capacity_bytes, kAlignment);
  if (capacity == 0 || capacity < capacity_bytes) {
    return absl::InvalidArgumentError(str_cat("an arena of ", capacity_bytes, " bytes"));
  }
  // Sealed against truncation, so that a peer that maps it can never be hit by SIGBUS.
  auto fd = make_shared_memory("paceline-arena", 0);
  if (!fd.ok()) return with_context(fd.status(), "the memory that members share");
  return std::unique_ptr<Arena>(new Arena(*std::move(fd), capacity));
}

Arena::~Arena() {
  for (const Block& block : blocks_) ::munmap(block.base, block.bytes);
}

// Maps a further block behind all others. The last block's rest stays unused.
absl::Status Arena::map(std::size_t bytes) {
  PL_RETURN_IF_ERROR(with_context(grow_shared_memory(fd_, mapped_ + bytes), "the memory that members share"));
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_.get(),
                      static_cast<off_t>(mapped_));
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(str_cat("mapping ", bytes,
                                                " bytes that members share: ", std::strerror(errno),
                                                "; is the address space limited (ulimit -v)?"));
  }
  ::madvise(base, bytes,
            MADV_HUGEPAGE);  // fewer page faults where the system allows it; else nothing changes
  blocks_.push_back({static_cast<std::byte*>(base), mapped_, bytes});
  used_ = mapped_;
  mapped_ += bytes;
  return absl::OkStatus();
}

absl::Status Arena::reserve(int parts) {
  const std::size_t part =
      limit_of_process() == RLIM_INFINITY ? left() : left() / static_cast<std::size_t>(parts);
  const std::size_t bytes = part / kAlignment * kAlignment;
  if (mapped_ - used_ >= bytes) return absl::OkStatus();
  PL_RETURN_IF_ERROR(map(bytes));
  capacity_ = mapped_;
  return absl::OkStatus();
}

absl::StatusOr<std::span<std::byte>> Arena::allocate(std::size_t bytes) {
  const std::size_t taken = round_up(bytes, kAlignment);
  if (taken < bytes || taken > left()) {
    return absl::ResourceExhaustedError(
        str_cat("of the ", capacity_, " bytes that this process may share ", left(), " are left, ", bytes,
                " were asked for; a server holds less where there are more of them (ps), and a machine with "
                "more memory gives more, up to 256 GiB, where ulimit -v and -f say unlimited"));
  }
  if (taken == 0) return std::span<std::byte>();
  if (taken > mapped_ - used_) PL_RETURN_IF_ERROR(map(taken));
  const Block& block = blocks_.back();
  std::span<std::byte> result(block.base + (used_ - block.begin), bytes);
  used_ += taken;
  return result;
}

const Arena::Block* Arena::block_of(const void* data) const {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  for (const Block& block : blocks_) {
    const auto base = reinterpret_cast<std::uintptr_t>(block.base);
    if (at >= base && at - base < block.bytes) return &block;
  }
  return nullptr;
}

bool Arena::contains(const void* data, std::size_t bytes) const {
  const Block* const block = block_of(data);
  if (block == nullptr) return false;
  const std::size_t end = std::min(block->begin + block->bytes, used_), at = offset_of(data);
  return at <= end && bytes <= end - at;
}

std::size_t Arena::offset_of(const void* data) const {
  if (data == nullptr) return 0;
  const Block* const block = block_of(data);
  PL_CHECK(block != nullptr, "the address must lie in the arena");
  return block->begin + static_cast<std::size_t>(static_cast<const std::byte*>(data) - block->base);
}

}  // namespace paceline::transport
