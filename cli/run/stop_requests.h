#pragma once

// The signals that ask a run to stop, as requests of its user: the first one stops it in order, a second one
// at once. Signals that come together are one request: timeout(1) signals its child and then its process
// group, and a shell whose terminal closes does the like. A `paceline delete` asks at once only the second
// time, so that two of them don't hasten each other. Pure; one thread.

#include <cstdint>
#include <optional>
#include <set>

#include "base/clock.h"

namespace paceline::cli {

enum class StopRequest : std::uint8_t { kSame, kInOrder, kAtOnce };

class StopRequests {
 public:
  static constexpr Duration kTogether = std::chrono::milliseconds(500);  // with the first one

  // A signal came; `deleter`: the process of the `paceline delete` that sent it. Returns what is to be done
  // now.
  StopRequest add(TimePoint now, std::optional<std::int64_t> deleter = std::nullopt);

  bool any() const { return first_.has_value(); }
  bool at_once() const { return at_once_; }
  const std::set<std::int64_t>& deleters() const { return deleters_; }

 private:
  std::optional<TimePoint> first_;
  bool at_once_ = false;
  std::set<std::int64_t> deleters_;  // one for each command that somebody gives while the run ends
};

}  // namespace paceline::cli
