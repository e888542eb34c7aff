#pragma once

// Why a member is slower than the others, from what its kernel and its GPU tell, beside what the others' do.
// Pure.

#include <span>
#include <string>

#include "base/telemetry.h"
#include "controller/api/straggler.h"

namespace paceline::diagnosis {

// A share of the time, above the others' median by so much, is evidence.
inline constexpr double kTellingShare = 0.1;
inline constexpr double kTellingFaults = 50;  // major page faults a second, above the others' median
inline constexpr double kTellingTimer = 5;    // ms that its timers are late, likewise
inline constexpr double kTellingClock = 0.9;  // of the others' share of their highest clock

// Sets `cause` and `evidence` of a straggler whose `part` is set. Of several causes the one nearer to the
// hardware counts: a GPU that is slowed down, a CPU quota, memory, a process that is stopped (its timers are
// late by more than they wait for a processor), other processes, storage.
void find_cause(const MemberTelemetry& own, std::span<const MemberTelemetry* const> others,
                api::Straggler& straggler);

}  // namespace paceline::diagnosis
