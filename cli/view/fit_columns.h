#pragma once

// Text that does with the columns there are: what matters least goes first. Pure.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::cli {

inline constexpr int kAnyWidth = 1 << 20;

using Row = std::vector<std::string>;

// Of those with a `goes` above 0, the least goes first.
struct Column {
  std::string_view name;
  bool right = false;
  int goes = 0;  // 0: stays
};

// The columns' names and `rows`, aligned; at most `width` wide where leaving columns out can do it.
std::vector<std::string> fit_table(std::span<const Column> columns, std::vector<Row> rows, int width);

struct Piece {
  std::string text;  // may hold escape sequences
  int goes = 0;      // as Column's
};

// The pieces that are not empty, in their order, two spaces apart, on at most `most` lines of at most
// `width`; what stays but is too wide has a line of its own.
std::vector<std::string> fit_lines(std::vector<Piece> pieces, int width, int most);

}  // namespace paceline::cli
