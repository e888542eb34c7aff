#include "cli/view/age.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text.h"

namespace paceline::cli {

std::string age_text(std::optional<WallTime> since, WallTime now) {
  if (!since) return "-";
  const std::int64_t seconds =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(now - *since).count());
  const std::int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  // The second unit only while it says something.
  const auto two = [](std::int64_t first, const char* unit, std::int64_t second, const char* smaller) {
    return second == 0 ? str_cat(first, unit) : str_cat(first, unit, second, smaller);
  };
  if (seconds < 120) return str_cat(seconds, "s");
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (hours < 3) return str_cat(minutes, "m");
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (days < 2) return str_cat(hours, "h");
  if (days < 8) return two(days, "d", hours % 24, "h");
  return str_cat(days, "d");
}

absl::StatusOr<Duration> parse_age(std::string_view text) {
  constexpr std::int64_t kMost = 10LL * 365 * 24 * 3600;
  const absl::Status wrong = absl::InvalidArgumentError(
      str_cat("\"", text, "\" is no time; allowed: 30s, 5m, 1h30m, 2d, or seconds"));
  std::int64_t seconds = 0;
  std::string_view rest = text;
  do {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || number < 0 || number > kMost) return wrong;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    std::int64_t unit = 1;
    if (!rest.empty()) {
      constexpr std::string_view kUnits = "smhd";
      constexpr std::int64_t kSeconds[] = {1, 60, 3600, 86400};
      const std::size_t at = kUnits.find(rest[0]);
      if (at == std::string_view::npos) return wrong;
      unit = kSeconds[at];
      rest.remove_prefix(1);
    }
    seconds += number * unit;
    if (seconds > kMost) return wrong;
  } while (!rest.empty());
  return std::chrono::seconds(seconds);
}

}  // namespace paceline::cli
