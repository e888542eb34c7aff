#pragma once

// Telemetry: members' words of themselves, as plain values that list their fields (fields.h). A new field
// stands here, in coordinator.proto under the same name, where it is measured, and where people see it.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace paceline {

// A row of a sparse table, and how often it was pulled.
struct HotRow {
  std::string table;
  std::uint64_t id = 0;
  std::int64_t pulls = 0;

  bool operator==(const HotRow&) const = default;
  static void fields(auto&& visit, auto& row) {
    visit(NamedField{"table"}, row.table);
    visit(NamedField{"id"}, row.id);
    visit(NamedField{"pulls"}, row.pulls);
  }
};

// A parameter server's load. Counts are since it began, rates of about the last second.
struct ServerTelemetry {
  double load = 0, bytes_per_second = 0;
  std::int64_t queue = 0, updates = 0;
  std::int64_t rows = 0, row_bytes = 0, rows_evicted = 0;
  std::vector<HotRow> hottest;

  bool operator==(const ServerTelemetry&) const = default;
  static void fields(auto&& visit, auto& s) {
    visit(NamedField{"load", "Share of the time in which it sums, updates or moves bytes.", 0, 1}, s.load);
    visit(NamedField{"bytesPerSecond", "Received and sent."}, s.bytes_per_second);
    visit(NamedField{"queue", "Gradients that wait for their update."}, s.queue);
    visit(NamedField{"updates", "So far."}, s.updates);
    visit(NamedField{"rows", "Of sparse tables."}, s.rows);
    visit(NamedField{"rowBytes", "The memory of sparse tables."}, s.row_bytes);
    visit(NamedField{"rowsEvicted", "Of sparse tables with a bound, so far."}, s.rows_evicted);
    visit(NamedField{"hottest", "Rows, most pulls first."}, s.hottest);
  }
};

// One worker's gradients, since it began. Staleness: updates between its read and its update.
struct StalenessTelemetry {
  std::int64_t applied = 0, dropped = 0, max = 0;
  double mean = 0, wait_seconds = 0;
  std::vector<std::int64_t> histogram;  // no zeros at its end

  bool operator==(const StalenessTelemetry&) const = default;
  static void fields(auto&& visit, auto& s) {
    visit(NamedField{"applied", "Gradients."}, s.applied);
    visit(NamedField{"dropped", "Gradients that came too late."}, s.dropped);
    visit(NamedField{"mean", "Staleness."}, s.mean);
    visit(NamedField{"max", "Staleness."}, s.max);
    visit(NamedField{"waitSeconds", "For its turns."}, s.wait_seconds);
    visit(NamedField{.name = "histogram",
                     .about = "Applied with staleness 0, 1, ...; the 32nd: 31 or more.",
                     .items = 32},
          s.histogram);
  }
};

// How a member's GPU is; what it does not tell is empty. Counters are since its driver was loaded, but Xids
// since the member began.
struct GpuTelemetry {
  std::string name, uuid;
  std::optional<std::int64_t> index;
  std::optional<double> compute_ms, update_ms, utilization, memory_utilization;
  std::optional<std::int64_t> memory_used_mib, memory_total_mib;
  std::optional<std::int64_t> sm_clock_mhz, most_sm_clock_mhz, memory_clock_mhz, most_memory_clock_mhz;
  std::optional<std::int64_t> temperature_celsius;
  std::optional<double> power_watts, power_limit_watts;
  std::vector<std::string> slowdowns;
  std::optional<std::int64_t> corrected_ecc_errors, uncorrected_ecc_errors, pcie_replays;
  std::int64_t xids = 0, last_xid = 0;

  bool operator==(const GpuTelemetry&) const = default;
  static void fields(auto&& visit, auto& g) {
    visit(NamedField{"name"}, g.name);
    visit(NamedField{"uuid"}, g.uuid);
    visit(NamedField{"index", "Of those that the member sees, from 0."}, g.index);
    visit(NamedField{"computeMs", "Forward and backward, of a step."}, g.compute_ms);
    visit(NamedField{"updateMs", "The optimizer's step."}, g.update_ms);
    visit(NamedField{"utilization", "0 to 1.", 0, 1}, g.utilization);
    visit(NamedField{"memoryUtilization", "0 to 1.", 0, 1}, g.memory_utilization);
    visit(NamedField{"memoryUsedMib", "By all its processes."}, g.memory_used_mib);
    visit(NamedField{"memoryTotalMib"}, g.memory_total_mib);
    visit(NamedField{"smClockMhz"}, g.sm_clock_mhz);
    visit(NamedField{"mostSmClockMhz"}, g.most_sm_clock_mhz);
    visit(NamedField{"memoryClockMhz"}, g.memory_clock_mhz);
    visit(NamedField{"mostMemoryClockMhz"}, g.most_memory_clock_mhz);
    visit(NamedField{"temperatureCelsius", "", -1000, 1000}, g.temperature_celsius);
    visit(NamedField{"powerWatts", "", 0, 1e6}, g.power_watts);
    visit(NamedField{"powerLimitWatts", "", 0, 1e6}, g.power_limit_watts);
    visit(NamedField{"slowdowns", "Why its clocks are lower than they could be."}, g.slowdowns);
    visit(NamedField{"correctedEccErrors"}, g.corrected_ecc_errors);
    visit(NamedField{"uncorrectedEccErrors"}, g.uncorrected_ecc_errors);
    visit(NamedField{"pcieReplays"}, g.pcie_replays);
    visit(NamedField{"xids", "Errors that the driver told."}, g.xids);
    visit(NamedField{"lastXid"}, g.last_xid);
  }
};

// The kernel's word on a member's process, as rates of the last second or so (KernelStats of
// coordinator.proto).
struct KernelTelemetry {
  std::optional<double> cpu, throttled, run_delay, cpu_pressure, memory_pressure, io_pressure, major_faults,
      read_bytes, retransmits, timer_delay_ms;

  bool operator==(const KernelTelemetry&) const = default;
  static void fields(auto&& visit, auto& h) {
    visit(NamedField{"cpu", "Processors that it used."}, h.cpu);
    visit(NamedField{"throttled", "Share of the time in which a CPU quota held it up.", 0, 1}, h.throttled);
    visit(NamedField{"runDelay",
                     "Of the time in which its threads were ready, the share without a processor.", 0, 1},
          h.run_delay);
    visit(NamedField{"cpuPressure", "PSI, some.", 0, 1}, h.cpu_pressure);
    visit(NamedField{"memoryPressure", "PSI, some.", 0, 1}, h.memory_pressure);
    visit(NamedField{"ioPressure", "PSI, some.", 0, 1}, h.io_pressure);
    visit(NamedField{"majorFaults", "A second."}, h.major_faults);
    visit(NamedField{"readBytes", "A second, from storage."}, h.read_bytes);
    visit(NamedField{"retransmits", "Share of its TCP segments.", 0, 1}, h.retransmits);
    visit(NamedField{"timerDelayMs",
                     "How late a timer of its process rings, but for the wait for a processor."},
          h.timer_delay_ms);
  }
};

// All that one member says of how it is. The times are of a step, as means over those of the last heartbeat
// that had any, on the member's own clock.
struct MemberTelemetry {
  double input_ms = 0, compute_ms = 0, wait_ms = 0, transfer_ms = 0, update_ms = 0, step_ms = 0;
  std::uint64_t bytes_sent = 0;
  std::int64_t samples = 0;  // of a step, in a ring: its share of the global batch, as the coordinator cut it
  std::int64_t dropped_samples = 0;  // that it left out of partial steps
  std::optional<ServerTelemetry> server;
  std::optional<StalenessTelemetry> staleness;
  std::optional<GpuTelemetry> gpu;
  std::optional<KernelTelemetry> kernel;

  bool operator==(const MemberTelemetry&) const = default;
  static void fields(auto&& visit, auto& m) {
    visit(NamedField{"inputMs", "Of a step: it waits for data."}, m.input_ms);
    visit(NamedField{"computeMs", "Forward and backward."}, m.compute_ms);
    visit(NamedField{"waitMs", "It waits for others."}, m.wait_ms);
    visit(NamedField{"transferMs", "Bytes move."}, m.transfer_ms);
    visit(NamedField{"updateMs", "The optimizer's step."}, m.update_ms);
    visit(NamedField{"stepMs", "The whole step."}, m.step_ms);
    visit(NamedField{"bytesSent", "By its exchange, so far."}, m.bytes_sent);
    visit(NamedField{"samples", "Of a step: its share of the global batch."}, m.samples);
    visit(NamedField{"droppedSamples", "Left out of partial steps, so far."}, m.dropped_samples);
    visit(NamedField{"server", "Of a parameter server; rates of about a second."}, m.server);
    visit(NamedField{"staleness", "Of a worker's gradients, in updates between read and update."},
          m.staleness);
    visit(NamedField{"gpu", "Its GPU, as NVML says."}, m.gpu);
    visit(NamedField{"kernel", "What its kernel tells of it; rates of about a second."}, m.kernel);
  }
};

// The counts of a member that has ended, which hold; nothing of the moment does.
inline MemberTelemetry counts_of(const MemberTelemetry& member) {
  MemberTelemetry counts;
  counts.bytes_sent = member.bytes_sent;
  counts.dropped_samples = member.dropped_samples;
  counts.staleness = member.staleness;
  if (counts.server = member.server; counts.server) {
    counts.server->load = counts.server->bytes_per_second = 0;
    counts.server->queue = 0;
  }
  if (member.gpu) {
    const GpuTelemetry& gpu = *member.gpu;
    counts.gpu.emplace();
    counts.gpu->name = gpu.name;
    counts.gpu->uuid = gpu.uuid;
    counts.gpu->index = gpu.index;
    counts.gpu->corrected_ecc_errors = gpu.corrected_ecc_errors;
    counts.gpu->uncorrected_ecc_errors = gpu.uncorrected_ecc_errors;
    counts.gpu->pcie_replays = gpu.pcie_replays;
    counts.gpu->xids = gpu.xids;
    counts.gpu->last_xid = gpu.last_xid;
  }
  return counts;
}

}  // namespace paceline
