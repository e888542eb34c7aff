#include "base/thread_room.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxProcBytes = 64 << 10;
constexpr std::size_t kSmallStackBytes = 256
                                         << 10;  // of threads that others will start with stacks of theirs

void* wait_for(void* gate) {
  const std::lock_guard passed(*static_cast<std::mutex*>(gate));
  return nullptr;
}

// How many of `count` it could start, at most so many.
int start(int count, std::size_t stack_bytes, std::mutex& gate, std::vector<pthread_t>& threads) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  if (stack_bytes > 0) ::pthread_attr_setstacksize(&attributes, stack_bytes);
  int started = 0;
  for (pthread_t thread; started < count; ++started) {
    if (::pthread_create(&thread, &attributes, wait_for, &gate) != 0) break;
    threads.push_back(thread);
  }
  ::pthread_attr_destroy(&attributes);
  return started;
}

// The number behind `name` at the begin of a line of /proc/PID/status; -1 where there is none.
std::int64_t field(std::string_view status, std::string_view name) {
  for (const auto line : absl::StrSplit(absl::string_view(status.data(), status.size()), '\n')) {
    if (!std::string_view(line.data(), line.size()).starts_with(name)) continue;
    const std::vector<std::string> words =
        absl::StrSplit(line.substr(name.size()), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    std::int64_t value = 0;
    return !words.empty() && absl::SimpleAtoi(words[0], &value) ? value : -1;
  }
  return -1;
}

// As RLIMIT_NPROC counts, of the processes that are seen from here.
std::int64_t threads_of_user(const std::string& root, std::int64_t user) {
  std::int64_t threads = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator each(root + "/proc", error), end; !error && each != end;
       each.increment(error)) {
    if (std::atoi(each->path().filename().c_str()) <= 0) continue;
    const auto status = read_file(each->path().string() + "/status", kMaxProcBytes);
    if (status.ok() && field(*status, "Uid:") == user)
      threads += std::max<std::int64_t>(0, field(*status, "Threads:"));
  }
  return threads;
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

// Of the cgroup `folder` and those above it, up to `top`.
void add_pids_limits(std::string folder, const std::string& top, std::vector<std::string>& limits) {
  while (folder.size() >= top.size()) {
    const auto most = read_file(folder + "/pids.max", kMaxProcBytes);
    const auto current = read_file(folder + "/pids.current", kMaxProcBytes);
    if (most.ok() && current.ok() && !most->starts_with("max"))
      limits.push_back(str_cat(trimmed(*current), " of the ", trimmed(*most), " that ", folder,
                               "/pids.max allows its cgroup or container are in use"));
    folder.erase(std::min(folder.rfind('/'), folder.size()));
    if (folder.empty()) return;
  }
}

}  // namespace

int grpc_threads() {
  const auto cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF));
  constexpr int kTimersAndExecutors = 6;
  return kTimersAndExecutors + std::clamp(cores, 2, 16) + std::clamp(cores / 2, 2, 16);
}

absl::Status room_for_threads(int own, int others) {
  own = std::min(own, kMostTried);
  others = std::min(others, kMostTried - own);
  std::mutex gate;
  std::vector<pthread_t> threads;
  threads.reserve(static_cast<std::size_t>(own + others));
  int started;
  {
    const std::lock_guard closed(gate);
    started = start(own, 0, gate, threads);
    if (started == own) started += start(others, kSmallStackBytes, gate, threads);
  }
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  if (started == own + others) return absl::OkStatus();
  return absl::ResourceExhaustedError(str_cat(
      "this needs ", own + others, " more threads and processes, and the system starts ", started, ": ",
      thread_limits(""), "; raise what limits them (ulimit -u, the container's pids, ulimit -v), end ",
      "other programs, or use fewer members or threads"));
}

std::string thread_limits(const std::string& root) {
  std::vector<std::string> limits;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && ::getuid() != 0)
    limits.push_back(str_cat(threads_of_user(root, ::getuid()), " of the ", limit.rlim_cur,
                             " that ulimit -u allows user ", ::getuid(), " are in use"));
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    limits.push_back(str_cat("ulimit -v allows ", limit.rlim_cur >> 10, " KiB, with their stacks"));
  const auto cgroups = read_file(root + "/proc/self/cgroup", kMaxProcBytes);
  const std::vector<std::string> lines = absl::StrSplit(cgroups.value_or(""), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const std::string top = root + (parts[1] == "pids" ? "/sys/fs/cgroup/pids" : "/sys/fs/cgroup");
    if (parts[1].empty() || parts[1] == "pids")
      add_pids_limits(top + (parts[2] == "/" ? "" : parts[2]), top, limits);
  }
  return limits.empty() ? "no limit of this user, and none of a cgroup that is seen from here, is known"
                        : absl::StrJoin(limits, ", ");
}

}  // namespace paceline
