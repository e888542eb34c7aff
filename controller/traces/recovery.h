#pragma once

// A job's change of members as a trace of OpenTelemetry: a root span from the last step before until the
// first step after, and one below it for each of its parts: until a loss was known, to the view, to one
// state, to the first step. Pure.
//
// Written as OTLP's ExportTraceServiceRequest in JSON (opentelemetry-proto 1.x, "JSON Protobuf Encoding").

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "controller/api/status.h"

namespace paceline::traces {

// Fresh for each trace, hexadecimal: 16 bytes for the trace, and 8 for each span behind them.
inline constexpr std::size_t kIdBytes = 16 + 5 * 8;

struct Recovery {
  std::string ns, job, uid;  // ns and uid are empty for a run of this machine
  api::ViewChange change;
  WallTime end;     // when the first step was applied
  std::string ids;  // 2 * kIdBytes hexadecimal digits
};

// The request's body. `service`: service.name.
std::string export_request(std::span<const Recovery> recoveries, std::string_view service);

}  // namespace paceline::traces
