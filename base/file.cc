#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace paceline {

namespace {

absl::Status write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(errno, str_cat("write ", path));
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return absl::OkStatus();
}

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status write_and_rename(const std::string& path, const std::string& temporary,
                              std::string_view content) {
  {
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd.valid()) return errno_status(errno, str_cat("create ", temporary));
    PL_RETURN_IF_ERROR(write_all(fd.get(), content, temporary));
    if (::fsync(fd.get()) != 0) return errno_status(errno, str_cat("sync ", temporary));
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return errno_status(errno, str_cat("rename ", temporary, " to ", path));
  }
  UniqueFd folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) ::fsync(folder.get());
  return absl::OkStatus();
}

}  // namespace

absl::Status errno_status(int error, std::string_view what) {
  const std::string message = str_cat(what, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    default:
      return absl::UnavailableError(message);
  }
}

absl::StatusOr<std::string> read_file(const std::string& path, std::size_t limit_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_status(errno, str_cat("open ", path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, str_cat("stat ", path));
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError(str_cat(path, " is a folder, not a file"));
  return read_open_file(fd.get(), path, limit_bytes);
}

absl::Status write_file_atomically(const std::string& path, std::string_view content) {
  static std::atomic<unsigned> counter{0};  // two writers of one path in one process use two temporary files
  const std::string temporary = str_cat(path, ".tmp-", ::getpid(), "-", counter.fetch_add(1));
  const absl::Status status = write_and_rename(path, temporary, content);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

absl::Status write_named_file(const std::string& path, std::string_view content) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT && ::lstat(path.c_str(), &info) != 0) return write_file_atomically(path, content);
    return errno_status(errno, str_cat("stat ", path));
  }
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError(str_cat(path, " is a folder, not a file"));
  if (S_ISREG(info.st_mode)) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (error) return errno_status(error.value(), str_cat("find ", path));
    return write_file_atomically(real.string(), content);
  }
  const UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe that nobody reads is an error
  if (!fd.valid()) return errno_status(errno, str_cat("open ", path));
  const int flags = ::fcntl(fd.get(), F_GETFL);
  ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK);
  return write_all(fd.get(), content, path);
}

}  // namespace paceline
