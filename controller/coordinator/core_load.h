#pragma once

// A parameter server's rates, from what it counts. Pure.

#include <optional>

#include "base/clock.h"
#include "base/telemetry.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline::coordinator {

inline constexpr Duration kLoadWindow = std::chrono::seconds(1);

// One server's: its newest counts, with rates over kLoadWindow or a bit more.
class ServerLoad {
 public:
  void add(const v1::ServerStats& stats, TimePoint now);
  const std::optional<ServerTelemetry>& telemetry() const { return telemetry_; }

 private:
  std::optional<ServerTelemetry> telemetry_;
  std::optional<TimePoint> since_;  // the window began so
  std::int64_t busy_ns_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace paceline::coordinator
