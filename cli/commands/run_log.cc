#include "cli/commands/run_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "cli/cluster/names.h"
#include "controller/cluster/kube/times.h"
#include "controller/plan/pods.h"

namespace paceline::cli {

namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(200);
constexpr std::size_t kChunk = 1 << 16;
constexpr std::size_t kTimeBytes = 40;  // the time of a line takes less

// "fashion-allreduce-worker-0-1": worker-0, attempt 1. Nothing where it is no pod's name.
std::optional<kube::SlimPod> pod_named(const std::string& name) {
  const std::size_t attempt = name.rfind('-');
  if (attempt == std::string::npos || attempt == 0) return std::nullopt;
  const std::size_t index = name.rfind('-', attempt - 1);
  if (index == std::string::npos || index == 0) return std::nullopt;
  const std::size_t role = name.rfind('-', index - 1) + 1;  // 0 where there is none
  const auto number = plan::attempt_in(name);
  const auto member = member_pattern(std::string_view(name).substr(role, attempt - role));
  if (!number || !member.ok() || !member->index) return std::nullopt;
  kube::SlimPod pod;
  pod.key = "/" + name;
  pod.role = *member->role;
  pod.index = *member->index;
  pod.attempt = static_cast<std::int32_t>(*number);
  return pod;
}

// The place where the last `lines` lines begin.
off_t tail_of(int fd, int lines) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  if (lines == 0) return size;
  int found = 0;
  char chunk[4096];
  for (off_t position = size; position > 0;) {
    const off_t begin = std::max<off_t>(0, position - static_cast<off_t>(sizeof(chunk)));
    const ssize_t n = ::pread(fd, chunk, static_cast<std::size_t>(position - begin), begin);
    if (n <= 0) break;
    for (ssize_t i = n - 1; i >= 0; --i) {
      if (chunk[i] == '\n' && begin + i + 1 != size && ++found == lines) return begin + i + 1;
    }
    position = begin;
  }
  return 0;
}

// The place, from `at` on, where the first line begins that says a time from `from` on; the file's end where
// none does. `at` begins a line.
off_t first_since(int fd, off_t at, WallTime from) {
  char chunk[kChunk];
  bool begins = true;  // a line, at `at`
  for (ssize_t n = 0; (n = ::pread(fd, chunk, sizeof(chunk), at)) > 0;) {
    const std::string_view text(chunk, static_cast<std::size_t>(n));
    std::size_t line = 0, end = 0;
    for (; (end = text.find('\n', line)) != std::string_view::npos || line == 0; line = end + 1) {
      const std::string_view word = text.substr(line, text.find_first_of(" \n", line) - line);
      const auto time = begins ? kube::parse_time(word.substr(0, kTimeBytes)) : std::nullopt;
      if (time && *time >= from) return at + static_cast<off_t>(line);
      begins = end != std::string_view::npos;
      if (!begins) break;  // the chunk is within one line
    }
    at += static_cast<off_t>(begins ? line : text.size());
  }
  return at;
}

}  // namespace

absl::StatusOr<std::vector<kube::SlimPod>> logged_pods(const std::string& folder) {
  std::error_code error;
  std::vector<kube::SlimPod> pods;
  for (std::filesystem::directory_iterator each(folder, error), end; each != end; each.increment(error)) {
    auto pod = each->path().extension() == ".log" ? pod_named(each->path().stem().string()) : std::nullopt;
    if (!pod) continue;
    pod->uid = each->path().string();
    pods.push_back(*std::move(pod));
  }
  const absl::Status status = error ? errno_status(error.value(), folder) : absl::OkStatus();
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  std::ranges::sort(pods, {}, [](const kube::SlimPod& pod) {
    return std::tuple(pod.role, pod.index, pod.attempt, pod.key);
  });
  return pods;
}

absl::Status read_run_log(const std::string& path, const LogRequest& request, WallTime now,
                          const kube::Pause& pause, const LogSink& sink, const std::stop_token& stop) {
  const auto file = open_regular_file(path);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  if (absl::IsInvalidArgument(file.status()))  // no fault of the command line
    return absl::FailedPreconditionError(file.status().message());
  PL_RETURN_IF_ERROR(file.status());
  const int fd = file->fd.get();
  off_t at = request.tail ? tail_of(fd, *request.tail) : 0;
  if (request.since) at = first_since(fd, at, now - *request.since);
  for (;;) {
    const bool last = !request.follow || request.over();
    char chunk[kChunk];
    ssize_t n = 0;
    while ((n = ::pread(fd, chunk, sizeof(chunk), at)) > 0) {
      at += n;
      if (!sink.bytes(std::string_view(chunk, static_cast<std::size_t>(n)))) return absl::OkStatus();
    }
    if (n < 0) return errno_status(errno, path);
    if (last || !pause(kLookAgain, stop)) return absl::OkStatus();
  }
}

}  // namespace paceline::cli
