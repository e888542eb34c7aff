#pragma once

// A pod's log with timestamps, to its lines without: each once, however often the connection breaks and the
// log is read again from the second of its last line on. Pure; a value; one thread at a time.
//
// What is known of a line is its time and its number among the lines of that time. A line whose end has not
// come is held back, up to kMaxHeldBytes, and read again after a break.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace paceline::jobs {

class LogLines {
 public:
  static constexpr std::size_t kMaxHeldBytes = 1 << 18;

  // The bytes of new lines are appended to `out`.
  void feed(std::string_view bytes, std::string& out);
  // The next bytes are those of a log that is read again from from() on.
  void restart();
  // The log has ended: what is held back comes after all.
  void finish(std::string& out);
  // The time of the last line that came out; nothing before the first.
  std::optional<WallTime> from() const { return last_; }

 private:
  void line(std::string_view text, bool whole, std::string& out);

  std::string held_;
  bool within_ = false;  // the beginning of the present line has come out
  std::optional<WallTime> last_;
  std::size_t at_last_ = 0;  // lines of that time that came out
  bool again_ = false;       // reading what has been read
  std::size_t seen_ = 0;     // lines of that time that came again
};

}  // namespace paceline::jobs
