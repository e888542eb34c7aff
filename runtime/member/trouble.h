#pragma once

// When a member tells what keeps it from its coordinator: each trouble at once, and as long as it is kept
// from it again after kFirstAgain, which doubles up to kLongestAgain. A value; one thread at a time. Bound:
// kMostTroubles different ones are told at once. Pure.

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "base/clock.h"

namespace paceline::member {

inline constexpr Duration kFirstAgain = std::chrono::seconds(5), kLongestAgain = std::chrono::minutes(2);
inline constexpr std::size_t kMostTroubles = 8;

class Trouble {
 public:
  bool is_due(const std::string& trouble, TimePoint now) {
    if (told_.size() < kMostTroubles && told_.insert(trouble).second) {
      if (told_.size() == 1) next_ = now + kFirstAgain;
      return true;
    }
    if (now < next_) return false;
    again_ = std::min(2 * again_, kLongestAgain);
    next_ = now + again_;
    return true;
  }

 private:
  std::set<std::string> told_;
  Duration again_ = kFirstAgain;
  TimePoint next_{};
};

}  // namespace paceline::member
