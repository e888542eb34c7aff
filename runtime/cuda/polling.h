#pragma once

// How who waits for a GPU asks again and again, where nothing tells of its end. Short waits are answered at
// once, long ones leave the processor to others.

#include "base/clock.h"

namespace paceline::cuda {

// No pass, and nothing else that is given to a GPU, takes so long: one that is still at it hangs.
inline constexpr Duration kLongestWork = std::chrono::minutes(10);

// That come without a pause between them: each costs about a microsecond.
inline constexpr int kEagerQuestions = 200;

// After question number `asked`, from 0: nothing while questions are eager, then 20 us of sleep. Those are no
// more than they say: Linux may add 50 us to every sleep of a thread, and from the first one here adds 1 us
// at most to those of the calling one (and of threads that it starts later).
void pause_after(int asked);

}  // namespace paceline::cuda
