#pragma once

// What came of one checkpoint. A value.

#include <cstdint>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/ids.h"

namespace paceline::trainer {

struct SaveOutcome {
  absl::Status status;
  Step step = 0;
  std::uint64_t bytes = 0;
  Duration took{};   // from its begin to the end of its writing
  Duration stall{};  // of that, the owner waited
};

}  // namespace paceline::trainer
