#include "base/device_choice.h"

#include <charconv>

#include "base/text.h"

namespace paceline {

namespace {
constexpr std::string_view kOneOfGpus = "cuda:";
constexpr int kMaxGpus = 64;
constexpr std::size_t kMaxShown = 64;
}  // namespace

absl::StatusOr<DeviceChoice> parse_device_choice(std::string_view text) {
  if (text.empty() || text == "auto") return DeviceChoice{};
  if (text == "cpu") return DeviceChoice{DeviceChoice::Kind::kCpu, std::nullopt};
  if (text == "cuda") return DeviceChoice{DeviceChoice::Kind::kCuda, std::nullopt};
  if (text.starts_with(kOneOfGpus)) {
    int ordinal = -1;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + kOneOfGpus.size(), end, ordinal);
    if (error == std::errc() && at == end && ordinal >= 0 && ordinal < kMaxGpus)
      return DeviceChoice{DeviceChoice::Kind::kCuda, ordinal};
  }
  return absl::InvalidArgumentError(str_cat("is \"", text.substr(0, kMaxShown),
                                            "\"; it must be auto, cpu, cuda, or cuda:N with N from 0 to ",
                                            kMaxGpus - 1));
}

}  // namespace paceline
