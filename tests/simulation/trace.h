#pragma once

// The story of a world: the last lines of it, or all of them as they come; and the first check that failed,
// which is the world's end.

#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "tests/simulation/events.h"

namespace paceline::simulation {

class Trace {
 public:
  static constexpr std::size_t kKept = 120;  // lines

  Trace(const Events& events, bool prints) : events_(events), prints_(prints) {}

  template <typename... Parts>
  void add(const Parts&... parts) {
    const double seconds = std::chrono::duration<double>(events_.elapsed()).count();
    char time[32];
    std::snprintf(time, sizeof(time), "%10.4f  ", seconds);
    lines_.push_back(str_cat(time, parts...));
    if (prints_) std::printf("%s\n", lines_.back().c_str());
    if (lines_.size() > kKept) lines_.pop_front();
  }
  // The first one stays.
  template <typename... Parts>
  void fail(const char* checker, const Parts&... parts) {
    if (failure_) return;
    failure_ = str_cat(checker, ": ", parts...);
    add("FAILS ", *failure_);
  }
  TimePoint now() const { return events_.now(); }
  const std::optional<std::string>& failure() const { return failure_; }
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  const Events& events_;
  const bool prints_;
  std::deque<std::string> lines_;
  std::optional<std::string> failure_;
};

}  // namespace paceline::simulation
