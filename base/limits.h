#pragma once

// What more than one part bounds alike.

namespace paceline {

// The members of one view, who are linked to one another: chief, workers and servers together. An evaluator
// is none of them, nor is a replica of a job without training.
inline constexpr int kMaxGroupMembers = 256;

}  // namespace paceline
