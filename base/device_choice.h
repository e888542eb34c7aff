#pragma once

// Where a program is told to compute, and how, as PACELINE_DEVICE and PACELINE_CUDA_GRAPHS say
// (docs/gpus.md). Pure.

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"

namespace paceline {

struct DeviceChoice {
  enum class Kind : std::uint8_t { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  // kCuda: of the GPUs that the process sees; empty: the program's own choice.
  std::optional<int> ordinal;
};

// "auto", "" (as auto), "cpu", "cuda", "cuda:0" to "cuda:63". INVALID_ARGUMENT: `is "gpu"; it must be ...`,
// to stand behind the variable's name.
absl::StatusOr<DeviceChoice> parse_device_choice(std::string_view text);

// "on", "" (as on), "off", in any case. INVALID_ARGUMENT as above.
absl::StatusOr<bool> parse_cuda_graphs(std::string_view text);

// What the variable of this name may hold, "on or off", where `value` is none of that; empty: nothing is
// wrong, or the variable is another.
std::string_view device_rule_broken(std::string_view variable, std::string_view value);

// What the two variables hold; null: not set.
struct DeviceVariables {
  const char* device = nullptr;
  const char* cuda_graphs = nullptr;
};
struct DeviceSettings {
  DeviceChoice choice;
  bool cuda_graphs = true;
};
// INVALID_ARGUMENT: `PACELINE_DEVICE is "gpu"; it must be ...`.
absl::StatusOr<DeviceSettings> parse_device_settings(const DeviceVariables& variables);

}  // namespace paceline
