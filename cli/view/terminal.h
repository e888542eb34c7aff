#pragma once

// What the terminal can do, and text that fits it. Pure but for detect_terminal().

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::cli {

struct Terminal {
  bool interactive = false;  // stdout is a terminal that understands cursor movement
  bool color = false;
  bool unicode = false;
  int columns = 80;
  int rows = 0;  // 0: not known
};

// Reads isatty, the window's size, TERM, NO_COLOR (https://no-color.org: any non-empty value), and the
// locale, once.
Terminal detect_terminal(int fd);

enum class Style : std::uint8_t { kNone, kBold, kDim, kRed, kGreen, kYellow, kCyan };
// `text` in `style` where the terminal has colours, else as it is.
std::string styled(const Terminal& terminal, Style style, std::string_view text);

// Columns that `text` takes: UTF-8 code points, without escape sequences.
int display_width(std::string_view text);
// sanitize(), with spaces for newlines and tabs: of a stranger's words in a line of a view, before it is
// fitted.
std::string sanitize_line(std::string_view text);
// Cut to `columns` with an ellipsis where it is longer; escape sequences stay whole and are closed.
std::string fit(const Terminal& terminal, std::string_view text, int columns);

// Ends all styles.
inline constexpr std::string_view kStyleEnd = "\x1b[0m";
// Bytes of what styled() writes, at the front of `text`: the begin of a style, or the end of all. 0: of none.
std::size_t style_length(std::string_view text);

// Columns aligned (the first left, the others as `right` says), two spaces apart; rows may be ragged. Cells
// have no style, and are sanitize_line().
std::vector<std::string> align_table(const std::vector<std::vector<std::string>>& rows,
                                     const std::vector<bool>& right);

std::string progress_bar(const Terminal& terminal, double fraction, int columns);

// 1234567 -> "1,234,567"; bytes -> "12.3 MiB"; seconds -> "1 min 5 s".
std::string with_commas(std::int64_t value);
std::string human_bytes(std::uint64_t bytes);
std::string human_seconds(double seconds);
std::string fixed(double value, int decimals);
// A loss: four decimals, or "1.417e+36" where those would hide it or fill the line.
std::string loss_text(double value);

}  // namespace paceline::cli
