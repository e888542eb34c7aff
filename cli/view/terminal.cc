#include "cli/view/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/sanitize.h"

namespace paceline::cli {

namespace {

std::string_view env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = env(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos || value.find("utf8") != std::string_view::npos;
  }
  return false;
}

// In the order of Style.
constexpr std::string_view kEscapes[] = {"",         "\x1b[1m",  "\x1b[2m", "\x1b[31m",
                                         "\x1b[32m", "\x1b[33m", "\x1b[36m"};
static_assert(std::size(kEscapes) == static_cast<std::size_t>(Style::kCyan) + 1);

std::string_view escape_of(Style style) {
  return kEscapes[static_cast<std::size_t>(style)];
}

// Length in bytes of the escape sequence at the front of `text`; 0 where there is none.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b' || text[1] != '[') return 0;
  for (std::size_t i = 2; i < text.size(); ++i) {
    if (text[i] >= '@' && text[i] <= '~') return i + 1;
  }
  return text.size();
}

bool starts_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

}  // namespace

Terminal detect_terminal(int fd) {
  Terminal terminal;
  const std::string_view term = env("TERM");
  terminal.interactive = ::isatty(fd) == 1 && !term.empty() && term != "dumb";
  terminal.color = terminal.interactive && env("NO_COLOR").empty();
  terminal.unicode = utf8_locale();
  winsize size{};
  if (terminal.interactive && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = std::clamp<int>(size.ws_col, 20, 200);
    terminal.rows = size.ws_row;
  }
  return terminal;
}

std::string styled(const Terminal& terminal, Style style, std::string_view text) {
  if (!terminal.color || style == Style::kNone) return std::string(text);
  return std::string(escape_of(style)).append(text).append(kStyleEnd);
}

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t skip = escape_length(text.substr(i)); skip > 0) {
      i += skip;
      continue;
    }
    if (starts_code_point(text[i])) ++width;
    ++i;
  }
  return width;
}

std::string sanitize_line(std::string_view text) {
  std::string line = sanitize(text);
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

std::string fit(const Terminal& terminal, std::string_view text, int columns) {
  if (display_width(text) <= columns) return std::string(text);
  std::string out;
  int width = 0;
  bool styled_now = false;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t skip = escape_length(text.substr(i)); skip > 0) {
      out.append(text.substr(i, skip));
      styled_now = text.substr(i, skip) != kStyleEnd;
      i += skip;
      continue;
    }
    std::size_t end = i + 1;
    while (end < text.size() && !starts_code_point(text[end])) ++end;
    if (width == columns - 1) break;
    out.append(text.substr(i, end - i));
    ++width;
    i = end;
  }
  out += terminal.unicode ? "…" : "~";
  if (styled_now) out.append(kStyleEnd);
  return out;
}

std::size_t style_length(std::string_view text) {
  for (const Style style :
       {Style::kBold, Style::kDim, Style::kRed, Style::kGreen, Style::kYellow, Style::kCyan}) {
    if (const std::string_view escape = escape_of(style); text.starts_with(escape)) return escape.size();
  }
  return text.starts_with(kStyleEnd) ? kStyleEnd.size() : 0;
}

std::vector<std::string> align_table(const std::vector<std::vector<std::string>>& cells,
                                     const std::vector<bool>& right) {
  std::vector<std::vector<std::string>> rows = cells;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = sanitize_line(cell);
  }
  std::vector<int> widths;
  for (const auto& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(static_cast<std::size_t>(widths[c] - display_width(row[c])), ' ');
      const bool to_right = c < right.size() && right[c];
      if (c > 0) line += "  ";
      line += to_right ? padding + row[c] : row[c] + (c + 1 < row.size() ? padding : "");
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string progress_bar(const Terminal& terminal, double fraction, int columns) {
  if (!(fraction >= 0)) fraction = 0;
  const int filled = static_cast<int>(std::lround(std::min(fraction, 1.0) * columns));
  std::string done, left;
  for (int i = 0; i < columns; ++i)
    (i < filled ? done : left) += terminal.unicode ? (i < filled ? "█" : "░") : (i < filled ? "#" : "-");
  return styled(terminal, Style::kGreen, done) + styled(terminal, Style::kDim, left);
}

std::string with_commas(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > (value < 0 ? 1U : 0U) && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fixed(value, unit == 0 ? 0 : 1) + " " + kUnits[unit];
}

std::string human_seconds(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "-";
  return format_duration(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  const std::string_view digits(text + 1);
  const bool negative_zero = text[0] == '-' && digits.find_first_not_of("0.") == std::string_view::npos;
  return negative_zero ? std::string(digits) : text;
}

std::string loss_text(double value) {
  const double size = std::fabs(value);
  if (value == 0 || !std::isfinite(value) || (size >= 1e-3 && size < 1e6)) return fixed(value, 4);
  char text[64];
  std::snprintf(text, sizeof(text), "%.3e", value);
  return text;
}

}  // namespace paceline::cli
