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

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

bool is_limited(decltype(RLIMIT_AS) resource) {
  struct rlimit limit {};
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

std::size_t usual_capacity(std::uint64_t machine_bytes, bool limited) {
  constexpr std::uint64_t kLeast = std::uint64_t{16} << 30, kMost = std::uint64_t{256} << 30;
  return limited ? kLeast : std::clamp(std::min(machine_bytes, kMost) * 2, kLeast, kMost);
}

std::size_t usual_capacity() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  const std::uint64_t bytes = pages > 0 && page_bytes > 0
                                  ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes)
                                  : 0;
  return usual_capacity(bytes, is_limited(RLIMIT_AS) || is_limited(RLIMIT_FSIZE));
}

absl::StatusOr<std::unique_ptr<Arena>> Arena::create(std::size_t capacity_bytes) {
  const std::size_t capacity = round_up(capacity_bytes, kAlignment);
  if (capacity == 0 || capacity < capacity_bytes) {
    return absl::InvalidArgumentError(str_cat("an arena of ", capacity_bytes, " bytes"));
  }
  // Sealed against truncation, so that a peer that maps it can never be hit by SIGBUS.
  auto fd = make_shared_memory("paceline-arena", capacity);
  if (!fd.ok()) return with_context(fd.status(), "the memory that members share");
  void* base = ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd->get(), 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(str_cat("mapping an arena of ", capacity,
                                                " bytes: ", std::strerror(errno),
                                                "; is the address space limited (ulimit -v)? It must hold "
                                                "that much, though no memory is taken before it is used"));
  }
  ::madvise(base, capacity,
            MADV_HUGEPAGE);  // fewer page faults where the system allows it; else nothing changes
  return std::unique_ptr<Arena>(new Arena(*std::move(fd), static_cast<std::byte*>(base), capacity));
}

Arena::Arena(UniqueFd fd, std::byte* base, std::size_t capacity)
    : fd_(std::move(fd)), base_(base), capacity_(capacity) {}

Arena::~Arena() {
  ::munmap(base_, capacity_);
}

absl::StatusOr<std::span<std::byte>> Arena::allocate(std::size_t bytes) {
  const std::size_t taken = round_up(bytes, kAlignment);
  if (taken < bytes || taken > left()) {
    return absl::ResourceExhaustedError(
        str_cat("of the ", capacity_, " bytes that this process may share ", left(), " are left, ", bytes,
                " were asked for; a server holds less where there are more of them (ps), and a machine with "
                "more memory gives more, up to 256 GiB, where ulimit -v and -f say unlimited"));
  }
  std::span<std::byte> result(base_ + used_, bytes);
  used_ += taken;
  return result;
}

bool Arena::contains(const void* data, std::size_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(data), base = reinterpret_cast<std::uintptr_t>(base_);
  return begin >= base && begin - base <= used_ && bytes <= used_ - (begin - base);
}

std::size_t Arena::offset_of(const void* data) const {
  PL_CHECK(contains(data, 0), "the address must lie in the arena");
  return static_cast<std::size_t>(static_cast<const std::byte*>(data) - base_);
}

}  // namespace paceline::transport
