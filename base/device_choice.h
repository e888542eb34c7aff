#pragma once

// Where a program is told to compute, as PACELINE_DEVICE says (docs/gpus.md). Pure.

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

}  // namespace paceline
