#include "runtime/member/kernel_watch.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/cpu_quota.h"
#include "base/file.h"
#include "base/text.h"
#include "proto/telemetry.h"

namespace paceline::member {

namespace {

constexpr std::size_t kMostBytes = 64 << 10;

template <typename Take>
void read(const std::string& path, Take take) {
  if (const auto text = read_file(path, kMostBytes); text.ok()) take(*text);
}

}  // namespace

void KernelWatch::rang(Duration late) {
  if (!own_) return;
  late_ += std::chrono::duration<double>(std::max(late, Duration::zero())).count();
  ++timers_;
}

void KernelWatch::add_to(v1::Heartbeat& heartbeat, TimePoint now) {
  if (!reads_) return;
  if (!read_at_ || now - *read_at_ >= kInterval) {
    const KernelCounters before = std::exchange(counters_, read());
    if (read_at_) {
      const double seconds = std::chrono::duration<double>(now - *read_at_).count();
      to_wire(rates_between(before, counters_, seconds), rates_.emplace());
    }
    read_at_ = now;
  }
  if (rates_) *heartbeat.mutable_kernel() = *rates_;
}

KernelCounters KernelWatch::read() const {
  KernelCounters counters;
  counters.late = late_;
  counters.timers = timers_;
  std::error_code error;
  int threads = 0;
  for (std::filesystem::directory_iterator task(process_ + "/task", error), end; !error && task != end;
       task.increment(error)) {
    if (++threads > kMostThreads) break;
    member::read(task->path().string() + "/schedstat",
                 [&](const std::string& text) { add_schedstat(text, counters); });
  }
  member::read(process_ + "/stat", [&](const std::string& text) { take_stat(text, counters); });
  member::read(process_ + "/io", [&](const std::string& text) { take_io(text, counters); });
  member::read(process_ + "/net/snmp", [&](const std::string& text) { take_snmp(text, counters); });
  counters.throttled = read_throttled();
  counters.cpu_pressure = read_pressure("cpu");
  counters.memory_pressure = read_pressure("memory");
  counters.io_pressure = read_pressure("io");
  return counters;
}

// The longest that its own cgroup, or one above it, held it up.
std::optional<double> KernelWatch::read_throttled() const {
  std::optional<double> most;
  const auto cgroups = read_file(process_ + "/cgroup", kMostBytes);
  if (!cgroups.ok()) return most;
  for (const QuotaFiles& files : quota_files(*cgroups, root_ + "/sys/fs/cgroup")) {
    member::read(files.stat, [&](const std::string& text) {
      if (const auto seconds = throttled_seconds(text)) most = std::max(most.value_or(0), *seconds);
    });
  }
  return most;
}

// In a container with cgroup v2 its own; else the machine's.
std::optional<double> KernelWatch::read_pressure(const char* what) const {
  std::optional<double> seconds;
  member::read(str_cat(root_, "/sys/fs/cgroup/", what, ".pressure"),
               [&](const std::string& text) { seconds = pressure_of(text); });
  if (!seconds)
    member::read(str_cat(root_, "/proc/pressure/", what),
                 [&](const std::string& text) { seconds = pressure_of(text); });
  return seconds;
}

}  // namespace paceline::member
