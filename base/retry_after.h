#pragma once

// How long whoever refused something asks not to be asked again, as HTTP's Retry-After says it (RFC 9110,
// section 10.2.3): it travels with the status.

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"

namespace paceline {

// In milliseconds, rounded down. REQUIRES: `status` is not OK.
void set_retry_after(absl::Status& status, Duration time);

// Nothing where none was asked for.
std::optional<Duration> retry_after(const absl::Status& status);

// with_context() of status.h, which forgets the time, and the time.
absl::Status with_context_and_time(const absl::Status& status, std::string_view context);

}  // namespace paceline
