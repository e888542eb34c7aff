#pragma once

// Stragglers as text for people. Pure.

#include <string>

#include "controller/api/straggler.h"

namespace paceline::diagnosis {

// "worker-3"; of kAllSlow "all members", or "3 members".
std::string subject_of(const api::Straggler& straggler);
// "1.9x", "12x".
std::string factor_text(double factor);
// "worker-3 on node-b: 1.9x the others' median for 52 steps (190 ms, theirs 100 ms), in compute; its CPU
// quota holds it up 46 % of the time".
std::string message_of(const api::Straggler& straggler);
// "worker-3 holds the others back no more".
std::string end_of(const api::Straggler& straggler);

}  // namespace paceline::diagnosis
