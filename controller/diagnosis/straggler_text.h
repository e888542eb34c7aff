#pragma once

// Stragglers as text for people. Pure.

#include <string>

#include "controller/api/straggler.h"

namespace paceline::diagnosis {

// "worker-3"; of kAllSlow "all members", or "worker-1 and worker-3"; of kSlowLink "the link from worker-3 to
// worker-0".
std::string subject_of(const api::Straggler& straggler);
// "1.9x", "12x".
std::string factor_text(double factor);
std::string milliseconds_text(double ms);  // "8.9 ms", "1.2 s"
// "worker-3 on node-b: 1.9x the others' median for 52 steps (190 ms, theirs 100 ms), in compute; its CPU
// quota holds it up 46 % of the time".
std::string message_of(const api::Straggler& straggler);
// "it moves 24 MB/s while it has something to send; 3 % of its segments were sent again". `again`: a share.
std::string link_evidence(double bytes_per_second, double again);
// "worker-3 holds the others back no more".
std::string end_of(const api::Straggler& straggler);
// "pod job-worker-3-1 is to take over from pod job-worker-3-0", or what came of it.
std::string text_of(const api::StragglerReplacement& replacement);

}  // namespace paceline::diagnosis
