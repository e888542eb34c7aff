#pragma once

// What the members of a view tell each other of their devices, and what follows for the way of gradients.
// Pure.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/collective/fabric.h"

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

// How the opening of what sends gradients from device to device has ended for a member.
enum class Opening : std::int64_t {
  kOpened,
  kEnded,    // for what became of it on another rank
  kRefused,  // such devices can't be served: all ranks know it alike
  kFailed,   // here
};
Opening opening_of(const absl::Status& opened, int rank);

// What follows from all ranks' openings, `opened` being the own one's.
struct NotOpened {
  std::string why;     // for this member's log; empty: all have opened
  bool fault = false;  // it could have been opened
};
// Who has a reason of its own says that, others say whose log does. `why` is empty on all ranks or on none.
NotOpened why_not_opened(std::span<const Opening> ranks, const collective::Group& group,
                         const absl::Status& opened);

// Why not all members' states can be in their devices' memory: the first rank that computes on processors.
// Empty: they can.
std::string why_state_on_hosts(std::span<const MemberDevice> ranks);

// Ranks that have `rank`'s device, itself included; 0: it has none of its own in the world.
int members_on_device(std::span<const MemberDevice> ranks, int rank);

}  // namespace paceline::trainer
