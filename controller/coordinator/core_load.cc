#include "controller/coordinator/core_load.h"

#include <algorithm>
#include <cmath>

#include "proto/telemetry.h"

namespace paceline::coordinator {

void ServerLoad::add(const v1::ServerStats& stats, TimePoint now) {
  ServerTelemetry told = telemetry_of(stats);
  if (telemetry_) {
    told.load = telemetry_->load;
    told.bytes_per_second = telemetry_->bytes_per_second;
  }
  const auto sane = [](auto count) { return std::clamp<decltype(count)>(count, 0, kMostCount); };
  const std::int64_t busy_ns = sane(stats.busy_ns());
  const std::uint64_t bytes = sane(stats.bytes_received()) + sane(stats.bytes_sent());
  // Counts that go back are another process's.
  const bool begins = !since_ || busy_ns < busy_ns_ || bytes < bytes_;
  if (begins || now - *since_ >= kLoadWindow) {
    if (!begins) {
      constexpr double kNanosecond = 1e-9, kThousand = 1000;
      const double seconds = std::chrono::duration<double>(now - *since_).count();
      const double busy = static_cast<double>(busy_ns - busy_ns_) * kNanosecond / seconds;
      told.load = std::round(std::clamp(busy, 0.0, 1.0) * kThousand) / kThousand;
      told.bytes_per_second = std::round(static_cast<double>(bytes - bytes_) / seconds);
    }
    since_ = now;
    busy_ns_ = busy_ns;
    bytes_ = bytes;
  }
  telemetry_ = std::move(told);
}

}  // namespace paceline::coordinator
