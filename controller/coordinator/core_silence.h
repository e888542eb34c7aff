#pragma once

// How long a member may be silent before it counts as frozen. Pure.
//
// A fixed limit blames members that are only late: where more processes run than there are cores, every
// heartbeat is. So the limit follows what the others show, as adaptive failure detectors do (Chen, Toueg and
// Aguilera, "On the Quality of Service of Failure Detectors", 2002): a multiple of the gaps between messages
// of a typical member, never less than `timeout` and never more than `most`.

#include <array>
#include <cstddef>
#include <vector>

#include "base/clock.h"

namespace paceline::coordinator {

inline constexpr int kGapFactor = 4;

// The gaps between the last messages of one member.
class Gaps {
 public:
  void add(Duration gap) { gaps_[next_++ % gaps_.size()] = gap; }
  Duration largest() const;                     // zero while there is none
  bool is_known() const { return next_ >= 2; }  // enough to know the member's pace

 private:
  std::array<Duration, 8> gaps_{};
  std::size_t next_ = 0;
};

// `largest`: of every member but the one in question that is attached, or whose stream broke for a reason
// that nobody knows, the largest gap, the present silence included; where there is no other member, of that
// one itself without it.
Duration silence_limit(Duration timeout, Duration most, std::vector<Duration> largest);

}  // namespace paceline::coordinator
