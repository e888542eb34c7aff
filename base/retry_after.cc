#include "base/retry_after.h"

#include <charconv>
#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "base/status.h"

namespace paceline {

namespace {

constexpr char kMilliseconds[] = "paceline.dev/retry-after-milliseconds";

}  // namespace

void set_retry_after(absl::Status& status, Duration time) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  status.SetPayload(kMilliseconds, absl::Cord(std::to_string(milliseconds)));
}

std::optional<Duration> retry_after(const absl::Status& status) {
  const auto payload = status.GetPayload(kMilliseconds);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  std::int64_t milliseconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  return std::chrono::milliseconds(milliseconds);
}

absl::Status with_context_and_time(const absl::Status& status, std::string_view context) {
  absl::Status result = with_context(status, context);
  if (const std::optional<Duration> time = retry_after(status)) set_retry_after(result, *time);
  return result;
}

}  // namespace paceline
