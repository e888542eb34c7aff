#pragma once

// How long one member may keep the others waiting for storage. They only end a wait for a member that lives
// and talks, but does not go on: a dead one is seen by its links, a frozen one by its heartbeats, which come
// from a thread of their own (docs/checkpoints.md). Of a load, of giving others what was loaded, and with
// parameter servers of a save, they are limits of standing still: as long as bytes of a state move, it may
// take any time. Two are on all of it, since nothing is heard that could be waited by:
//  - opening data, before a view's links are made: who opens has no thread at its links, and the parsers
//  count
//    nothing. Since all open their data before they connect, it is on what one takes longer than another.
//  - rank 0's save in all-reduce: meanwhile the others compute, and then wait in one exchange, in which no
//  word
//    can come between.

#include "base/clock.h"

namespace paceline::trainer {

// For a view, the first one or the next: whoever is attached can't know whether a pod of another member waits
// for a free node, or for its image. The coordinator and the planner say who is missing, and for how long one
// may be.
inline constexpr Duration kFormingLimit = std::chrono::hours(24 * 365);

inline constexpr Duration kLoadLimit = std::chrono::minutes(30);  // data, and then each piece of a checkpoint
inline constexpr Duration kSaveLimit = std::chrono::minutes(30);  // rank 0's checkpoint
// How long a server serves on when the job ends unfinished, and nothing of what it holds is collected:
// worker 0 may be about to.
inline constexpr Duration kLastServiceLimit = std::chrono::seconds(30);
// And when it was asked to stop itself: worker 0 may be writing a checkpoint, and collects the last one then.
inline constexpr Duration kStoppedServiceLimit = std::chrono::minutes(5);

}  // namespace paceline::trainer
