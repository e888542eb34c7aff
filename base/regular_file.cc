#include "base/regular_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"

namespace paceline {

namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

absl::Status not_regular(const std::string& path, mode_t mode) {
  return absl::InvalidArgumentError(
      str_cat(path, " is ", kind_of(mode), ", not a regular file: put the file back, or remove it"));
}

// What open(2) says of them where it can't open them: a pipe for writing that nobody reads, a socket, a
// device without its driver (ENXIO), a folder for writing (EISDIR).
bool may_be_no_regular_file(int error) {
  return error == ENXIO || error == ENODEV || error == EISDIR;
}

}  // namespace

absl::StatusOr<RegularFile> open_regular_file(const std::string& path, int flags) {
  // Of a regular file O_NONBLOCK makes no difference.
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
  const int error = fd.valid() ? 0 : errno;
  struct stat info {};
  if (may_be_no_regular_file(error) && ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return not_regular(path, info.st_mode);
  if (error != 0) return errno_status(error, str_cat("open ", path));
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, str_cat("stat ", path));
  if (!S_ISREG(info.st_mode)) return not_regular(path, info.st_mode);
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);  // for programs that inherit it
  return RegularFile{std::move(fd), static_cast<std::uint64_t>(info.st_size)};
}

absl::StatusOr<std::string> read_open_file(int fd, const std::string& path, std::size_t limit_bytes) {
  std::string content;
  char chunk[65536];
  while (true) {
    const ssize_t n = ::read(fd, chunk, sizeof(chunk));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(errno, str_cat("read ", path));
    if (n == 0) return content;
    if (content.size() + static_cast<std::size_t>(n) > limit_bytes) {
      return absl::FailedPreconditionError(str_cat(path, " is larger than ", limit_bytes, " bytes"));
    }
    content.append(chunk, static_cast<std::size_t>(n));
  }
}

absl::StatusOr<std::string> read_regular_file(const std::string& path, std::size_t limit_bytes) {
  PL_ASSIGN_OR_RETURN(const RegularFile file, open_regular_file(path));
  return read_open_file(file.fd.get(), path, limit_bytes);
}

absl::StatusOr<std::string> read_last_lines(const std::string& path, std::size_t limit_bytes) {
  PL_ASSIGN_OR_RETURN(const RegularFile file, open_regular_file(path));
  const std::uint64_t left_out = file.size - std::min<std::uint64_t>(file.size, limit_bytes);
  // One byte more says whether a line begins there.
  const std::uint64_t begin = left_out - std::min<std::uint64_t>(left_out, 1);
  std::string text(file.size - begin, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n =
        ::pread(file.fd.get(), text.data() + got, text.size() - got, static_cast<off_t>(begin + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(errno, str_cat("read ", path));
    if (n == 0) break;  // it was cut meanwhile
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  if (left_out > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

}  // namespace paceline
