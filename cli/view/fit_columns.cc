#include "cli/view/fit_columns.h"

#include <algorithm>
#include <cstddef>

#include "cli/view/terminal.h"

namespace paceline::cli {

namespace {

// Where the next to go is; the end where all stay.
template <typename Range>
auto next_to_go(Range& range) {
  auto next = range.end();
  for (auto it = range.begin(); it != range.end(); ++it) {
    if (it->goes > 0 && (next == range.end() || it->goes < next->goes)) next = it;
  }
  return next;
}

std::vector<std::string> wrap(const std::vector<Piece>& pieces, int width) {
  std::vector<std::string> lines;
  for (const Piece& piece : pieces) {
    if (!lines.empty() && display_width(lines.back()) + 2 + display_width(piece.text) <= width) {
      lines.back() += "  " + piece.text;
    } else {
      lines.push_back(piece.text);
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> fit_table(std::span<const Column> columns, std::vector<Row> rows, int width) {
  std::vector<Column> shown(columns.begin(), columns.end());
  Row header;
  for (const Column& column : shown) header.emplace_back(column.name);
  rows.insert(rows.begin(), std::move(header));
  while (true) {
    std::vector<bool> right;
    right.reserve(shown.size());
    for (const Column& column : shown) right.push_back(column.right);
    std::vector<std::string> table = align_table(rows, right);
    const auto too_wide = [&](const std::string& line) { return display_width(line) > width; };
    const auto next = next_to_go(shown);
    if (next == shown.end() || std::none_of(table.begin(), table.end(), too_wide)) return table;
    const std::ptrdiff_t at = next - shown.begin();
    for (Row& row : rows) {
      if (at < static_cast<std::ptrdiff_t>(row.size())) row.erase(row.begin() + at);
    }
    shown.erase(next);
  }
}

std::vector<std::string> fit_lines(std::vector<Piece> pieces, int width, int most) {
  std::erase_if(pieces, [](const Piece& piece) { return piece.text.empty(); });
  while (true) {
    std::vector<std::string> lines = wrap(pieces, width);
    const auto next = next_to_go(pieces);
    if (next == pieces.end() || lines.size() <= static_cast<std::size_t>(most)) return lines;
    pieces.erase(next);
  }
}

}  // namespace paceline::cli
