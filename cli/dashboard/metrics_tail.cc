#include "cli/dashboard/metrics_tail.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/dashboard/metrics_line.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kChunkBytes = 256 << 10;
constexpr std::size_t kMostLineBytes = 1 << 20;  // a longer one is none of ours

}  // namespace

absl::StatusOr<bool> MetricsTail::read(std::size_t most_bytes) {
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0) {
    if (errno == ENOENT) return true;
    return errno_status(errno, str_cat("stat ", path_));
  }
  if (info.st_ino == file_ && info.st_size == offset_) return true;
  auto file = open_regular_file(path_);
  if (absl::IsNotFound(file.status())) return true;
  PL_RETURN_IF_ERROR(file.status());
  if (::fstat(file->fd.get(), &info) != 0) return errno_status(errno, str_cat("stat ", path_));
  if (info.st_ino != file_ || info.st_size < offset_) {
    file_ = info.st_ino;
    offset_ = 0;
    begun_.clear();
    series_ = {};
  }
  std::string chunk(kChunkBytes, '\0');
  for (std::size_t taken = 0; taken < most_bytes;) {
    const ssize_t n = ::pread(file->fd.get(), chunk.data(), chunk.size(), offset_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(errno, str_cat("read ", path_));
    if (n == 0) return true;
    offset_ += n;
    taken += static_cast<std::size_t>(n);
    begun_.append(chunk, 0, static_cast<std::size_t>(n));
    take_lines();
  }
  return false;
}

void MetricsTail::take_lines() {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = begun_.find('\n', begin)) != std::string::npos; begin = end + 1)
    (void)add_metrics_line(std::string_view(begun_).substr(begin, end - begin), series_);
  begun_.erase(0, begin);
  if (begun_.size() > kMostLineBytes) begun_.clear();
}

}  // namespace paceline::cli
