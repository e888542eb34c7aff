#include "runtime/transport/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/status.h"

namespace paceline::transport {

absl::StatusOr<Mapping> Mapping::of(const UniqueFd& fd, Access access) {
  struct stat info {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(fd.get(), &info) != 0 || info.st_size < 0) {
    return absl::InvalidArgumentError("a peer's memory must be a sealed memfd");
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return Mapping();
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* base = ::mmap(nullptr, size, protection, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        str_cat("mapping ", size, " bytes of a peer: ", std::strerror(errno)));
  }
  ::madvise(base, size, MADV_HUGEPAGE);
  Mapping mapping;
  mapping.memory_ = {static_cast<std::byte*>(base), size};
  return mapping;
}

Mapping::~Mapping() {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

absl::StatusOr<UniqueFd> make_shared_memory(const char* name, std::size_t bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
    return absl::ResourceExhaustedError(str_cat("shared memory: ", std::strerror(errno)));
  PL_RETURN_IF_ERROR(grow_shared_memory(fd, bytes));
  return fd;
}

absl::Status grow_shared_memory(const UniqueFd& fd, std::size_t bytes) {
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0) return absl::OkStatus();
  const int error = errno;
  return absl::ResourceExhaustedError(str_cat(
      "shared memory of ", bytes, " bytes: ", std::strerror(error),
      error == EFBIG ? "; is the size of files limited (ulimit -f)? The limit is for this memory, too" : ""));
}

}  // namespace paceline::transport
