#pragma once

namespace paceline::cli {

// The reason in the status of a job that its user stopped, and the phase of such a run. To the controller
// (controller/plan/rule_stop.cc) it has failed; its user may resume it, so nothing deletes it unasked.
inline constexpr char kStopped[] = "Stopped";

}  // namespace paceline::cli
