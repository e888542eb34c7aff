#pragma once

// Which members make the next view of a ring. Pure.

#include <vector>

namespace paceline::coordinator {

struct RingMember {
  int number = 0;        // of its place: chief before workers, each by index
  bool chief = false;    // it leads where it is there
  bool in_view = false;  // of those that train, or trained last
  bool holds = false;    // a state, perhaps an old one
};

// At most `most`, by number: the chief first, then those in the view, then those that hold a state, then the
// others.
std::vector<int> choose_ring(std::vector<RingMember> there, int most);

}  // namespace paceline::coordinator
