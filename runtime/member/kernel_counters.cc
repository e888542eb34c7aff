#include "runtime/member/kernel_counters.h"

#include <algorithm>
#include <charconv>

namespace paceline::member {

namespace {

constexpr double kNanosecond = 1e-9, kMicrosecond = 1e-6;

std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// The number behind `name` in "name number" or "name: number".
std::optional<std::int64_t> named(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ' ') == name) return integer(line);
  }
  return std::nullopt;
}

std::optional<double> rate(const std::optional<double>& before, const std::optional<double>& after,
                           double seconds) {
  if (!before || !after || *after < *before) return std::nullopt;
  return (*after - *before) / seconds;
}

std::optional<double> rate(const std::optional<std::int64_t>& before,
                           const std::optional<std::int64_t>& after, double seconds) {
  if (!before || !after || *after < *before) return std::nullopt;
  return static_cast<double>(*after - *before) / seconds;
}

std::optional<double> share(std::optional<double> part, std::optional<double> rest) {
  if (!part || !rest) return std::nullopt;
  return *part + *rest > 0 ? *part / (*part + *rest) : 0;
}

}  // namespace

void add_schedstat(std::string_view text, KernelCounters& counters) {
  const auto ran = integer(take_until(text, ' ')), delayed = integer(take_until(text, ' '));
  if (!ran || !delayed) return;
  counters.turns += static_cast<double>(integer(take_until(text, '\n')).value_or(0));
  counters.ran = counters.ran.value_or(0) + static_cast<double>(*ran) * kNanosecond;
  counters.delayed = counters.delayed.value_or(0) + static_cast<double>(*delayed) * kNanosecond;
}

// The name of the program stands in brackets, and may have brackets and spaces of its own.
void take_stat(std::string_view text, KernelCounters& counters) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || text.size() < name_end + 2) return;
  text.remove_prefix(name_end + 2);
  constexpr int kBehindName = 9;  // state, ppid, pgrp, session, tty, tpgid, flags, minflt, cminflt
  for (int i = 0; i < kBehindName; ++i) take_until(text, ' ');
  counters.major_faults = integer(take_until(text, ' '));
}

void take_io(std::string_view text, KernelCounters& counters) {
  counters.read_bytes = named(text, "read_bytes:");
}

// Two lines "Tcp:", of names and of numbers.
void take_snmp(std::string_view text, KernelCounters& counters) {
  std::string_view names;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (!line.starts_with("Tcp:")) continue;
    if (names.empty()) {
      names = line;
      continue;
    }
    while (!names.empty() && !line.empty()) {
      const std::string_view name = take_until(names, ' '), value = take_until(line, ' ');
      if (name == "OutSegs") counters.segments_sent = integer(value);
      if (name == "RetransSegs") counters.segments_sent_again = integer(value);
    }
    return;
  }
}

std::optional<double> pressure_of(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    constexpr std::string_view kTotal = "total=";
    const std::size_t at = line.find(kTotal);
    if (!line.starts_with("some ") || at == std::string_view::npos) continue;
    const auto total = integer(line.substr(at + kTotal.size()));
    if (total) return static_cast<double>(*total) * kMicrosecond;
  }
  return std::nullopt;
}

KernelTelemetry rates_between(const KernelCounters& before, const KernelCounters& after, double seconds) {
  KernelTelemetry rates;
  rates.cpu = rate(before.ran, after.ran, seconds);
  rates.run_delay = share(rate(before.delayed, after.delayed, seconds), rates.cpu);
  rates.throttled = rate(before.throttled, after.throttled, seconds);
  rates.cpu_pressure = rate(before.cpu_pressure, after.cpu_pressure, seconds);
  rates.memory_pressure = rate(before.memory_pressure, after.memory_pressure, seconds);
  rates.io_pressure = rate(before.io_pressure, after.io_pressure, seconds);
  rates.major_faults = rate(before.major_faults, after.major_faults, seconds);
  rates.read_bytes = rate(before.read_bytes, after.read_bytes, seconds);
  const auto again = rate(before.segments_sent_again, after.segments_sent_again, seconds);
  const auto sent = rate(before.segments_sent, after.segments_sent, seconds);
  if (again && sent && *sent > 0) rates.retransmits = std::min(1.0, *again / *sent);
  // A thread waits for a processor before it hears a timer: as long as any does.
  constexpr double kMsPerSecond = 1000;
  const double turns = after.turns - before.turns;
  const double wait = turns > 0 ? rate(before.delayed, after.delayed, turns).value_or(0) : 0;
  if (const auto timers = static_cast<double>(after.timers - before.timers); timers > 0)
    rates.timer_delay_ms = std::max(0.0, (after.late - before.late) / timers - wait) * kMsPerSecond;
  return rates;
}

}  // namespace paceline::member
