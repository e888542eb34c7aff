#pragma once

// The kernel's counts of a process and of what it shares with others: texts of its files in, numbers out.
// Pure. Formats: proc(5), Linux Documentation/accounting/psi.rst and Documentation/scheduler/sched-stats.rst.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/telemetry.h"

namespace paceline::member {

// Counts since the process, or the machine, began; seconds where it is a time. What a kernel does not tell is
// empty.
struct KernelCounters {
  std::optional<double> ran,
      delayed;                      // summed over the process' threads: on a processor, and ready without one
  double turns = 0;                 // likewise: that they had on a processor
  std::optional<double> throttled;  // by the quota of its cgroup or of one above it
  std::optional<double> cpu_pressure, memory_pressure, io_pressure;  // "some"
  std::optional<std::int64_t> major_faults, read_bytes;
  std::optional<std::int64_t> segments_sent, segments_sent_again;  // by TCP, in its network namespace
  double late = 0;                                                 // summed over its timers
  std::int64_t timers = 0;                                         // that rang
};

// Each sets what its text tells.
void add_schedstat(std::string_view text, KernelCounters& counters);  // of one thread
void take_stat(std::string_view text, KernelCounters& counters);      // /proc/PID/stat
void take_io(std::string_view text, KernelCounters& counters);        // /proc/PID/io
void take_snmp(std::string_view text, KernelCounters& counters);      // /proc/PID/net/snmp
// The total of the line "some", in seconds.
std::optional<double> pressure_of(std::string_view text);

// The rates between the two, `seconds` > 0 apart. A count that went back (a thread that ended takes its time
// with it) says nothing.
KernelTelemetry rates_between(const KernelCounters& before, const KernelCounters& after, double seconds);

}  // namespace paceline::member
