#include "base/device_choice.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/status.h"
#include "base/text.h"
#include "base/whole_number.h"

namespace paceline {

namespace {
constexpr std::string_view kOneOfGpus = "cuda:";
constexpr int kMaxGpus = 64;  // the last of them is named in kDevices
constexpr std::string_view kDevices = "auto, cpu, cuda, or cuda:N with N from 0 to 63";
constexpr std::string_view kGraphs = "on or off";
constexpr char kDeviceVariable[] = "PACELINE_DEVICE", kGraphsVariable[] = "PACELINE_CUDA_GRAPHS";
constexpr std::size_t kMaxShown = 64;

template <typename Value>
absl::StatusOr<Value> named(const char* name, absl::StatusOr<Value> value) {
  if (value.ok()) return value;
  return absl::Status(value.status().code(), str_cat(name, " ", value.status().message()));
}

// In any case; `word` is in small letters.
bool is(std::string_view text, std::string_view word) {
  return std::ranges::equal(text, word, {}, [](unsigned char c) { return std::tolower(c); });
}

absl::Status none_of(std::string_view text, std::string_view allowed) {
  return absl::InvalidArgumentError(str_cat("is \"", text.substr(0, kMaxShown), "\"; it must be ", allowed));
}

std::string_view text_of(const char* value) {
  return value == nullptr ? "" : value;
}
}  // namespace

absl::StatusOr<DeviceChoice> parse_device_choice(std::string_view text) {
  if (text.empty() || text == "auto") return DeviceChoice{};
  if (text == "cpu") return DeviceChoice{DeviceChoice::Kind::kCpu, std::nullopt};
  if (text == "cuda") return DeviceChoice{DeviceChoice::Kind::kCuda, std::nullopt};
  if (text.starts_with(kOneOfGpus)) {
    const std::string_view number = text.substr(kOneOfGpus.size());
    if (whole_number_fault<unsigned>(number, 0, kMaxGpus - 1).empty()) {
      int ordinal = 0;
      std::from_chars(number.data(), number.data() + number.size(), ordinal);
      return DeviceChoice{DeviceChoice::Kind::kCuda, ordinal};
    }
  }
  return none_of(text, kDevices);
}

absl::StatusOr<bool> parse_cuda_graphs(std::string_view text) {
  if (text.empty() || is(text, "on")) return true;
  if (is(text, "off")) return false;
  return none_of(text, kGraphs);
}

std::string_view device_rule_broken(std::string_view variable, std::string_view value) {
  if (variable == kDeviceVariable && !parse_device_choice(value).ok()) return kDevices;
  if (variable == kGraphsVariable && !parse_cuda_graphs(value).ok()) return kGraphs;
  return "";
}

absl::StatusOr<DeviceSettings> parse_device_settings(const DeviceVariables& variables) {
  DeviceSettings settings;
  PL_ASSIGN_OR_RETURN(settings.choice,
                      named(kDeviceVariable, parse_device_choice(text_of(variables.device))));
  PL_ASSIGN_OR_RETURN(settings.cuda_graphs,
                      named(kGraphsVariable, parse_cuda_graphs(text_of(variables.cuda_graphs))));
  return settings;
}

}  // namespace paceline
