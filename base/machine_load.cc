#include "base/machine_load.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/processors.h"

namespace paceline {

std::optional<MachineLoad> machine_load() {
  double threads = 0;
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (::getloadavg(&threads, 1) != 1 || processors < 1) return std::nullopt;
  return MachineLoad{threads, static_cast<int>(processors), usable_processors()};
}

std::optional<std::uint64_t> free_memory(std::string_view text) {
  std::uint64_t kibibytes = 0;
  bool told = false;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    std::uint64_t value = 0;
    if (words.size() < 2 || !absl::SimpleAtoi(words[1], &value)) continue;
    told |= words[0] == "MemAvailable:";
    if (words[0] == "MemAvailable:" || words[0] == "SwapFree:") kibibytes += value;
  }
  return told ? std::optional(kibibytes << 10) : std::nullopt;
}

std::optional<std::uint64_t> free_memory() {
  const auto text = read_file("/proc/meminfo", 1 << 16);
  return text.ok() ? free_memory(*text) : std::nullopt;
}

std::optional<std::uint64_t> free_address_space(std::uint64_t limit, std::string_view statm,
                                                std::uint64_t page_bytes) {
  std::uint64_t pages = 0;
  const std::string_view first = statm.substr(0, statm.find(' '));
  if (!absl::SimpleAtoi(absl::string_view(first.data(), first.size()), &pages)) return std::nullopt;
  return limit - std::min(limit, pages * page_bytes);
}

std::optional<std::uint64_t> free_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  const auto statm = read_file("/proc/self/statm", 1 << 12);
  if (page_bytes < 1 || !statm.ok()) return std::nullopt;
  return free_address_space(limit.rlim_cur, *statm, static_cast<std::uint64_t>(page_bytes));
}

}  // namespace paceline
