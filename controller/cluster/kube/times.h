#pragma once

// Kubernetes' times. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace paceline::kube {

// RFC 3339 as metav1.Time and MicroTime have it: 2026-01-31T12:00:00Z, with a fraction or an offset too.
// Nothing for anything else, or a year before 1970 or after 2200.
std::optional<WallTime> parse_time(std::string_view text);

// metav1.Time, in whole seconds (rounded down): 2026-01-31T12:00:00Z.
std::string format_seconds(WallTime time);

// MicroTime, which insists on six digits: 2026-01-31T12:00:00.000000Z.
std::string format_micro_time(WallTime time);

}  // namespace paceline::kube
