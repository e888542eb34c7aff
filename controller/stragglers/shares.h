#pragma once

// Shares of the global batch that follow the members' speeds. Pure.
//
// A speed is a member's samples over its own time of a step (input, compute, update). Shares that follow
// speeds make own times equal, as far as time is proportional to samples; where a part of it is not, they
// come nearer to that each time, from one side.

#include <cstdint>
#include <span>
#include <vector>

namespace paceline::stragglers {

// No member gets more than this times the even share: beyond it the others' noise costs more than the slow
// member does. (Memory is no matter here: more than the even share takes more passes, each as large.)
inline constexpr double kMostOfEven = 2;
// Shares that are all so near to the even ones are the even ones.
inline constexpr double kNearlyEven = 0.05;

// A step of one member.
struct Load {
  std::int64_t samples = 0;
  double seconds = 0;  // its own time
};

// The samples of each of `members` where nobody is slow: as the sample ledger cuts equal shares.
std::vector<std::int64_t> even_shares(std::int64_t batch, int members);

// The samples of each member that make own times as equal as whole samples can, by rank; they add up to the
// batch, which is the sum of `loads`. At least 1 each, and at most kMostOfEven times the even share, rounded
// up. REQUIRES: samples and seconds above 0.
std::vector<std::int64_t> shares_by_speed(std::span<const Load> loads);

// The longest own time, in seconds, and what it would be with these samples.
double longest(std::span<const Load> loads);
double longest_with(std::span<const Load> loads, std::span<const std::int64_t> samples);

}  // namespace paceline::stragglers
