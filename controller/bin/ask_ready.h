#pragma once

// Asks a running controller, over HTTP or HTTPS, whether it is ready: for `helm test`, whose pod has no
// program but this one.

#include "absl/status/status.h"
#include "base/clock.h"
#include "controller/cluster/kube/pause.h"
#include "controller/cluster/kube/transport.h"

namespace paceline::controller {

inline constexpr Duration kReadyPatience = std::chrono::seconds(60);  // all tries together
inline constexpr Duration kReadyPause = std::chrono::seconds(1);      // between two tries
inline constexpr Duration kReadyTimeout = std::chrono::seconds(5);    // of one

// OK: /readyz answered 200. UNAVAILABLE: not within kReadyPatience; the message holds the last answer or
// error.
absl::Status ask_ready(kube::Transport& transport, const Clock& clock, const kube::Pause& pause);

}  // namespace paceline::controller
