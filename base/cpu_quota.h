#pragma once

// How many processors a cgroup's CPU quota is worth: what `docker run --cpus`, a pod's CPU limit and
// systemd's CPUQuota set. Pure: texts of the kernel's files in, numbers out. Formats: Linux
// Documentation/admin-guide/cgroup-v2.rst (cpu.max) and Documentation/scheduler/sched-bwc.rst (v1's
// cpu.cfs_quota_us, cpu.cfs_period_us).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The files that hold one cgroup's quota; `period` is empty where `quota` holds both (v2). `stat`: how often
// and for how long it held processes up.
struct QuotaFiles {
  std::string quota, period, stat;
};

// From the text of /proc/self/cgroup: the files of this process' cgroup and of all above it, below `root`
// (/sys/fs/cgroup). A quota of any of them counts. In a container the innermost may not be there: its cgroup
// is mounted as the root.
std::vector<QuotaFiles> quota_files(std::string_view cgroups, const std::string& root);

// "QUOTA PERIOD" in microseconds: the quota's processors, rounded up, at least 1; nothing for "max", -1, or
// what is no quota.
std::optional<int> processors_of_quota(std::string_view text);

// From the text of a cpu.stat: for how long processes were held up, in seconds (throttled_usec, or v1's
// throttled_time). Nothing where it says neither.
std::optional<double> throttled_seconds(std::string_view text);

}  // namespace paceline
