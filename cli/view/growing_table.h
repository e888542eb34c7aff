#pragma once

// A table whose rows come one by one: columns only grow. Pure but for its widths; one thread at a time.

#include <string>
#include <vector>

namespace paceline::cli {

class GrowingTable {
 public:
  // `right` as in align_table().
  explicit GrowingTable(std::vector<bool> right) : right_(std::move(right)) {}
  // The rows as lines, aligned with all that came before.
  std::vector<std::string> add(const std::vector<std::vector<std::string>>& rows);

 private:
  const std::vector<bool> right_;
  std::vector<std::string> widest_;  // of each column
};

}  // namespace paceline::cli
