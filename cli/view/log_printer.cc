#include "cli/view/log_printer.h"

#include <algorithm>
#include <utility>

#include "base/sanitize.h"

namespace paceline::cli {

namespace {

// A member's own lines name it after their time and level: "2026-01-31T12:00:00.000Z info  worker-0: ...".
// Where that name stands: begin and length; {0, 0} in any other line, such as one that a user's program
// printed.
std::pair<std::size_t, std::size_t> name_in(std::string_view line, const std::string& member) {
  const std::size_t time_end = line.find(' ');
  if (time_end == std::string_view::npos || time_end < 20 || line[10] != 'T' || line[time_end - 1] != 'Z')
    return {};
  const std::size_t level_end = line.find(' ', time_end + 1);
  const std::size_t name = line.find_first_not_of(' ', std::min(level_end, line.size()));
  if (name == std::string_view::npos || line.substr(name).rfind(member + ": ", 0) != 0) return {};
  return {name, member.size() + 2};
}

}  // namespace

// A piece of a line, with its newline where it has one.
void LogPrinter::print(LogSource& source, std::string_view piece) {
  if (!open_line_.empty() && open_line_ != source.id) out_ << "\n";  // another member's endless line
  const bool continued = source.in_line && open_line_ == source.id;
  std::string nameless;
  if (prefix_ && !continued) {
    out_ << source.member << " | ";
    if (const auto [at, length] = name_in(piece, source.member); length > 0 && !source.in_line)
      piece = nameless.append(piece).erase(at, length);
  }
  const bool ends = !piece.empty() && piece.back() == '\n';
  if (!source.in_line) source.shown = 0;
  if (!terminal_) {
    out_.write(piece.data(), static_cast<std::streamsize>(piece.size()));
  } else {
    const std::string_view text = piece.substr(0, piece.size() - (ends ? 1 : 0));
    const std::size_t room = kMaxShownBytes - std::min(source.shown, kMaxShownBytes);
    if (source.shown <= kMaxShownBytes) {
      out_ << sanitize(text.substr(0, room)) << (text.size() > room ? "..." : "");
      source.shown += std::min(text.size(), room + 1);
    }
    if (ends) out_ << "\n";
  }
  source.in_line = !ends;
  open_line_ = ends ? "" : source.id;
}

void LogPrinter::feed(LogSource& source, std::string_view bytes) {
  source.partial.append(bytes);
  std::size_t begin = 0, end;
  while ((end = source.partial.find('\n', begin)) != std::string::npos) {
    print(source, std::string_view(source.partial).substr(begin, end + 1 - begin));
    begin = end + 1;
  }
  source.partial.erase(0, begin);
  if (source.partial.size() <= kMaxPartialBytes) return;
  print(source, source.partial);
  source.partial.clear();
}

void LogPrinter::end(LogSource& source) {
  if (!source.partial.empty()) print(source, source.partial);
  source.partial.clear();
  if (source.in_line && (terminal_ || prefix_)) out_ << "\n";
  if (open_line_ == source.id) open_line_.clear();
  source.in_line = false;
}

}  // namespace paceline::cli
