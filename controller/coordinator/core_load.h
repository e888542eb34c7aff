#pragma once

// What parameter servers, their workers, and members with GPUs say of themselves, in sane ranges, and rates
// from what servers count. Pure.

#include <optional>

#include "base/clock.h"
#include "controller/coordinator/report.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline::coordinator {

inline constexpr Duration kLoadWindow = std::chrono::seconds(1);
inline constexpr int kMaxHotRows = 8;
inline constexpr int kMaxStalenessBuckets = 32;
inline constexpr std::size_t kMaxTableBytes = 64;
inline constexpr std::size_t kMaxGpuWordBytes = 64;
inline constexpr int kMaxSlowdowns = 8;

// One server's: a report of the newest counts, with rates over kLoadWindow or a bit more.
class ServerLoad {
 public:
  void add(const v1::ServerStats& stats, TimePoint now);
  const std::optional<ServerReport>& report() const { return report_; }

 private:
  std::optional<ServerReport> report_;
  std::optional<TimePoint> since_;  // the window began so
  std::int64_t busy_ns_ = 0;
  std::uint64_t bytes_ = 0;
};

StalenessReport from_wire(const v1::StalenessStats& stats);
GpuReport from_wire(const v1::GpuStats& stats);

}  // namespace paceline::coordinator
