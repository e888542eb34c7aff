#pragma once

// The one door to waiting: tests pass one that does not wait.

#include <functional>
#include <stop_token>

#include "base/clock.h"

namespace paceline::kube {

// Waits. False: `stop` was requested, at once.
using Pause = std::function<bool(Duration time, std::stop_token stop)>;

bool real_pause(Duration time, std::stop_token stop);

}  // namespace paceline::kube
