#pragma once

// What the members of a view tell each other of their devices, and what follows for the way of gradients.
// Pure.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace paceline::trainer {

// In words, as members send it.
struct MemberDevice {
  std::int64_t keeps_state = 0;  // weights, gradient and optimizer state can be in its memory
  std::int64_t exchanges = 0;    // it has what sends gradients from there
  std::array<char, 48> name{};   // its own in the world, as far as it goes; empty: it has none
};
inline constexpr std::size_t kMemberDeviceWords = sizeof(MemberDevice) / sizeof(std::int64_t);
MemberDevice member_device(bool keeps_state, bool exchanges, std::string_view name);

// The first reason, of all ranks', why gradients can't go from device to device: one device is two ranks',
// which nothing can mend that could be installed; then that `rank` itself has nothing that sends them
// (`why_not` says why, where it says anything), or another. Empty: they can. It is empty on all ranks or on
// none.
std::string why_by_hosts(std::span<const MemberDevice> ranks, int rank, std::string_view why_not);

// Why not all members' states can be in their devices' memory: the first rank that computes on processors.
// Empty: they can.
std::string why_state_on_hosts(std::span<const MemberDevice> ranks);

// Ranks that have `rank`'s device, itself included; 0: it has none of its own in the world.
int members_on_device(std::span<const MemberDevice> ranks, int rank);

}  // namespace paceline::trainer
