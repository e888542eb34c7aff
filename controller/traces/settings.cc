#include "controller/traces/settings.h"

#include <string_view>

#include "base/status.h"
#include "base/text.h"

namespace paceline::traces {

namespace {

struct Named {
  std::string name, value;
};

// The first of these variables that says something. An empty one counts as absent, as in OpenTelemetry.
std::optional<Named> first_of(const Variables& variable, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (auto value = variable(name); value && !value->empty()) return Named{name, *std::move(value)};
  }
  return std::nullopt;
}

absl::Status wrong(const Named& variable, std::string_view allowed) {
  return absl::InvalidArgumentError(
      str_cat(variable.name, " is \"", variable.value.substr(0, 200), "\"; allowed: ", allowed));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// It is nothing where a percent sign has not two digits behind it, or a control character comes out.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = digit_of(text[i + 1]), low = digit_of(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') return std::nullopt;
    out.push_back(c);
  }
  return out;
}

absl::Status read_headers(const Named& variable, Settings& settings) {
  constexpr std::string_view kAllowed = "key=value,key=value, with values percent-encoded";
  std::string_view rest = variable.value;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (trimmed(pair).empty()) continue;
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return wrong({variable.name, "..."}, kAllowed);
    const std::string_view key = trimmed(pair.substr(0, equals));
    const auto value = decoded(trimmed(pair.substr(equals + 1)));
    // It may be secret: the message does not show it.
    if (key.empty() || key.find_first_of(" :\r\n") != std::string_view::npos || !value)
      return wrong({variable.name, "..."}, kAllowed);
    settings.headers.emplace_back(key, *value);
  }
  return absl::OkStatus();
}

absl::Status read_endpoint(const Named& variable, bool is_whole, Settings& settings) {
  const std::string_view url = variable.value;
  const std::size_t scheme = url.find("://");
  const bool known = url.starts_with("http://") || url.starts_with("https://");
  if (!known || url.size() == scheme + 3) return wrong(variable, "http://HOST:PORT or https://HOST:PORT");
  const std::size_t slash = url.find('/', scheme + 3);
  if (url.substr(0, slash).find('@') != std::string_view::npos)  // it is not shown: it may hold a password
    return wrong({variable.name, "..."}, "no user and password; they go into OTEL_EXPORTER_OTLP_HEADERS");
  settings.server = url.substr(0, slash);
  settings.path = slash == std::string_view::npos ? "" : url.substr(slash);
  if (!is_whole) {
    while (settings.path.ends_with('/')) settings.path.pop_back();
    settings.path += "/v1/traces";
  }
  if (settings.path.empty()) settings.path = "/";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<Settings>> settings_of(const Variables& variable) {
  if (variable("OTEL_SDK_DISABLED") == "true" || variable("OTEL_TRACES_EXPORTER") == "none")
    return std::nullopt;
  const auto whole = first_of(variable, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"});
  const auto endpoint = whole ? whole : first_of(variable, {"OTEL_EXPORTER_OTLP_ENDPOINT"});
  if (!endpoint) return std::nullopt;
  Settings settings;
  PL_RETURN_IF_ERROR(read_endpoint(*endpoint, whole.has_value(), settings));
  if (const auto exporter = first_of(variable, {"OTEL_TRACES_EXPORTER"});
      exporter && exporter->value != "otlp")
    return wrong(*exporter, "otlp, none");
  if (const auto protocol =
          first_of(variable, {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"});
      protocol && protocol->value != "http/json" && protocol->value != "http/protobuf")
    return wrong(*protocol, "http/json, http/protobuf; a collector takes them at port 4318");
  if (const auto headers =
          first_of(variable, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"}))
    PL_RETURN_IF_ERROR(read_headers(*headers, settings));
  if (const auto service = first_of(variable, {"OTEL_SERVICE_NAME"})) settings.service = service->value;
  return settings;
}

}  // namespace paceline::traces
