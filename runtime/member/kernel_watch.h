#pragma once

// Reads what the kernel counts of a process (kernel_counters.h), at most once a second, for its
// heartbeats. A file that can't be read is left out. One thread.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/member/kernel_counters.h"

namespace paceline::member {

class KernelWatch {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(1);
  static constexpr int kMostThreads = 512;  // whose times are summed

  // `root`: of the file system; tests have another one. `pid`: of a process of this user; 0: this one;
  // below: of none, and nothing is told.
  explicit KernelWatch(std::string root = "", std::int64_t pid = 0)
      : root_(std::move(root)),
        process_(root_ + "/proc/" + (pid > 0 ? std::to_string(pid) : "self")),
        reads_(pid >= 0),
        own_(pid == 0) {}
  // A timer of this process has rung so late.
  void rang(Duration late);
  // Sets `kernel`, once there are two readings.
  void add_to(v1::Heartbeat& heartbeat, TimePoint now);

 private:
  KernelCounters read() const;
  std::optional<double> read_throttled() const;
  std::optional<double> read_pressure(const char* what) const;

  const std::string root_, process_;
  const bool reads_, own_;
  double late_ = 0;  // seconds, of so many timers
  std::int64_t timers_ = 0;
  std::optional<TimePoint> read_at_;
  KernelCounters counters_;
  std::optional<v1::KernelStats> rates_;
};

}  // namespace paceline::member
