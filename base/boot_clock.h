#pragma once

// A clock that a suspended machine does not stop. Thread-safe.

#include "base/clock.h"

namespace paceline {

// now() is CLOCK_BOOTTIME; SystemClock's stands still in a suspend. For what others may do meanwhile. Moments
// of the two are not to be mixed.
class BootClock final : public Clock {
 public:
  TimePoint now() const override;
  WallTime wall_now() const override;
};

}  // namespace paceline
