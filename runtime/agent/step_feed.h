#pragma once

// From what a program sends to a member's steps: lines out of datagrams, those that are good in ascending
// order, and what is to be said of the others, once for each kind and then ever more rarely. Pure.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/agent/step_line.h"

namespace paceline::agent {

class StepFeed {
 public:
  // The steps that a datagram brings, and that count. A datagram is one line or several.
  std::vector<StepLine> take(std::string_view datagram);
  // The log lines since the last call.
  std::vector<std::string> warnings() { return std::exchange(warnings_, {}); }
  // Lines that told of no step that counts.
  std::int64_t refused() const { return counts_[kBad] + counts_[kOld]; }

 private:
  enum Kind : std::uint8_t { kBad, kOld, kUnknown, kKinds };
  void warn(Kind kind, const std::string& what);

  Step newest_ = 0;
  std::array<std::int64_t, kKinds> counts_{};
  std::vector<std::string> warnings_;
};

}  // namespace paceline::agent
