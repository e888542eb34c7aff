#include "controller/cluster/local/log_tail.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"

namespace paceline::cluster {

namespace {

constexpr std::size_t kBlockBytes = 16 << 10;

// Where the last `lines` lines of `text` begin; npos where it has fewer line ends than that.
std::size_t tail_start(const std::string& text, int lines) {
  std::size_t end = text.size();
  if (end > 0 && text[end - 1] == '\n') --end;
  for (; lines > 0; --lines) {
    if (end == 0) return std::string::npos;
    end = text.rfind('\n', end - 1);
    if (end == std::string::npos) return std::string::npos;
  }
  return end + 1;
}

}  // namespace

absl::StatusOr<std::string> tail_file(const std::string& path, int lines, std::size_t limit_bytes,
                                      std::size_t begin) {
  PL_ASSIGN_OR_RETURN(const RegularFile file, open_regular_file(path));
  std::string tail;
  if (lines <= 0) return tail;
  std::size_t at = static_cast<std::size_t>(file.size);
  if (begin > at) begin = 0;
  while (at > begin && tail.size() < limit_bytes) {
    const std::size_t size = std::min({kBlockBytes, at - begin, limit_bytes - tail.size()});
    std::string block(size, '\0');
    const ssize_t got = ::pread(file.fd.get(), block.data(), size, static_cast<off_t>(at - size));
    if (got < 0) return errno_status(errno, path);
    block.resize(static_cast<std::size_t>(got));  // shorter where somebody truncates it meanwhile
    at -= size;
    tail.insert(0, block);
    if (const std::size_t start = tail_start(tail, lines); start != std::string::npos)
      return tail.substr(start);
  }
  return tail;
}

}  // namespace paceline::cluster
