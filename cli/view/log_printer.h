#pragma once

// LogPrinter passes members' lines on to a terminal or a pipe. A terminal gets them sanitized, and cut at
// kMaxShownBytes; a pipe gets every byte as it is. With a prefix each line begins with its member, and
// then doesn't name it again. One thread at a time.

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

namespace paceline::cli {

// One member's log.
struct LogSource {
  std::string id;         // no two sources have the same
  std::string member;     // "worker-0"
  std::string partial;    // of a line whose end has not come yet; at most kMaxPartialBytes
  bool in_line = false;   // the beginning of that line has been printed
  std::size_t shown = 0;  // bytes of it, on a terminal
};

class LogPrinter {
 public:
  static constexpr std::size_t kMaxPartialBytes = 1 << 16;
  static constexpr std::size_t kMaxShownBytes = 4096;

  LogPrinter(std::ostream& out, bool terminal, bool prefix)
      : out_(out), terminal_(terminal), prefix_(prefix) {}

  // Prints the whole lines that there are now, and of endless ones what is more than kMaxPartialBytes.
  void feed(LogSource& source, std::string_view bytes);
  // The log has ended, perhaps within a line.
  void end(LogSource& source);

 private:
  void print(LogSource& source, std::string_view piece);

  std::ostream& out_;
  const bool terminal_, prefix_;
  std::string open_line_;  // the id of the log whose line is not at its end
};

}  // namespace paceline::cli
