#pragma once

// A job as a history keeps it, beside the series of its steps.

#include <optional>
#include <string>

#include "base/clock.h"

namespace paceline::history {

struct Record {
  std::string uid, ns, name;
  WallTime created{}, changed{};  // milliseconds count
  bool over = false;              // succeeded, failed, or deleted
  std::optional<WallTime> deleted;
  std::string row, object;  // what a list tells of it, and the TrainingJob: JSON
};

}  // namespace paceline::history
