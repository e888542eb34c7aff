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
constexpr int kMaxGpus = 64;
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
  return absl::InvalidArgumentError(str_cat("is \"", text.substr(0, kMaxShown),
                                            "\"; it must be auto, cpu, cuda, or cuda:N with N from 0 to ",
                                            kMaxGpus - 1));
}

absl::StatusOr<bool> parse_cuda_graphs(std::string_view text) {
  if (text.empty() || is(text, "on")) return true;
  if (is(text, "off")) return false;
  return absl::InvalidArgumentError(str_cat("is \"", text.substr(0, kMaxShown), "\"; it must be on or off"));
}

absl::StatusOr<DeviceSettings> parse_device_settings(const DeviceVariables& variables) {
  DeviceSettings settings;
  PL_ASSIGN_OR_RETURN(settings.choice,
                      named("PACELINE_DEVICE", parse_device_choice(text_of(variables.device))));
  PL_ASSIGN_OR_RETURN(settings.cuda_graphs,
                      named("PACELINE_CUDA_GRAPHS", parse_cuda_graphs(text_of(variables.cuda_graphs))));
  return settings;
}

}  // namespace paceline
