#pragma once

#include <optional>
#include <string>

namespace paceline {

// How many processors this process may use, at least 1: those of its affinity mask, which taskset and cpusets
// set, and no more than its cgroup's CPU quota, rounded up. The quota is read once. Thread-safe.
int usable_processors();

// The smallest quota of this process' cgroups, in processors, rounded up; nothing where there is none. Reads
// proc/self/cgroup and sys/fs/cgroup below `root`.
std::optional<int> read_cpu_quota(const std::string& root);

}  // namespace paceline
