#pragma once

// Times as kubectl writes and reads them: 45s, 5m30s, 3h, 2d4h. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace paceline::cli {

// "-" where `since` is not known. A time to come is 0s: the clocks of two machines differ.
std::string age_text(std::optional<WallTime> since, WallTime now);

// "30s", "5m", "1h30m", "2d"; "90" is seconds. INVALID_ARGUMENT for anything else, and for more than ten
// years.
absl::StatusOr<Duration> parse_age(std::string_view text);

}  // namespace paceline::cli
