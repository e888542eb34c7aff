#pragma once

// How long one member may keep the others waiting for storage. They only end a wait for a member that lives
// and talks, but does not go on: a dead one is seen by its links, a frozen one by its heartbeats, which come
// from a thread of their own (docs/checkpoints.md).

#include "base/clock.h"

namespace paceline::trainer {

inline constexpr Duration kLoadLimit = std::chrono::minutes(30);  // data, then a checkpoint
inline constexpr Duration kSaveLimit = std::chrono::minutes(30);  // rank 0's checkpoint
// How long a server serves on when the job ends unfinished: worker 0 may be collecting what it holds.
inline constexpr Duration kLastServiceLimit = std::chrono::seconds(30);
// And when it was asked to stop itself: worker 0 may be writing a checkpoint, and collects the last one then,
// for so long at most.
inline constexpr Duration kStoppedServiceLimit = std::chrono::minutes(5);

}  // namespace paceline::trainer
