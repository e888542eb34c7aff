#include "base/processors.h"

#include <sched.h>

#include <algorithm>

#include "base/cpu_quota.h"
#include "base/file.h"

namespace paceline {

namespace {
constexpr std::size_t kMaxProcBytes = 64 << 10, kMaxQuotaBytes = 256;
}

std::optional<int> read_cpu_quota(const std::string& root) {
  const auto cgroups = read_file(root + "/proc/self/cgroup", kMaxProcBytes);
  if (!cgroups.ok()) return std::nullopt;
  std::optional<int> least;
  for (const QuotaFiles& files : quota_files(*cgroups, root + "/sys/fs/cgroup")) {
    auto text = read_file(files.quota, kMaxQuotaBytes);
    if (!text.ok()) continue;  // a cgroup above that this container does not see
    if (!files.period.empty()) {
      const auto period = read_file(files.period, kMaxQuotaBytes);
      if (!period.ok()) continue;
      *text += " " + *period;
    }
    const auto processors = processors_of_quota(*text);
    if (processors) least = std::min(least.value_or(*processors), *processors);
  }
  return least;
}

int usable_processors() {
  static const std::optional<int> quota = read_cpu_quota("");
  cpu_set_t set;
  CPU_ZERO(&set);
  const int masked = ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
  return std::min(masked, quota.value_or(masked));
}

}  // namespace paceline
