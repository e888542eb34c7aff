#include "cli/view/growing_table.h"

#include <utility>

#include "cli/view/terminal.h"

namespace paceline::cli {

std::vector<std::string> GrowingTable::add(const std::vector<std::vector<std::string>>& rows) {
  for (const auto& row : rows) {
    if (row.size() > widest_.size()) widest_.resize(row.size());
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {  // the last column is never padded
      std::string cell = sanitize_line(row[i]);
      if (display_width(cell) > display_width(widest_[i])) widest_[i] = std::move(cell);
    }
  }
  std::vector<std::vector<std::string>> all = {widest_};
  all.insert(all.end(), rows.begin(), rows.end());
  std::vector<std::string> lines = align_table(all, right_);
  lines.erase(lines.begin());
  return lines;
}

}  // namespace paceline::cli
