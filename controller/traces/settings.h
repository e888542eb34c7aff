#pragma once

// The receiver of traces, as the environment variables of OpenTelemetry name it. Pure.
//
//   OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or OTEL_EXPORTER_OTLP_ENDPOINT with /v1/traces behind it
//   OTEL_EXPORTER_OTLP_TRACES_HEADERS, or OTEL_EXPORTER_OTLP_HEADERS: key=value,key=value, percent-encoded
//   OTEL_EXPORTER_OTLP_TRACES_PROTOCOL, or OTEL_EXPORTER_OTLP_PROTOCOL: http/json, http/protobuf (receivers
//     take JSON at the same address)
//   OTEL_SERVICE_NAME, OTEL_TRACES_EXPORTER=none, OTEL_SDK_DISABLED=true

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace paceline::traces {

struct Settings {
  std::string server;  // http://collector:4318
  std::string path;    // /v1/traces
  std::vector<std::pair<std::string, std::string>> headers;
  std::string service = "paceline";
};

using Variables = std::function<std::optional<std::string>(const char* name)>;

// It is nothing where no traces are wanted. INVALID_ARGUMENT: the variable, and what is allowed.
absl::StatusOr<std::optional<Settings>> settings_of(const Variables& variable);

}  // namespace paceline::traces
