#include "runtime/tensor/ready_ranges.h"

#include <algorithm>

namespace paceline::tensor {

namespace {

void publish_together(std::vector<ReadyRange>& group, std::vector<ReadyRange>& told) {
  const std::size_t operation = group.back().operation;
  std::ranges::sort(group, std::ranges::greater{}, &ReadyRange::begin);
  const std::size_t first = told.size();
  for (const ReadyRange& range : group) {
    if (told.size() > first && told.back().begin == range.end) {
      told.back().begin = range.begin;
    } else {
      told.push_back({operation, range.begin, range.end});
    }
  }
  group.clear();
}

}  // namespace

std::vector<ReadyRange> gather_ranges(std::span<const ReadyRange> ready, std::size_t least_elements) {
  std::vector<ReadyRange> told, group;
  std::size_t elements = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    group.push_back(ready[i]);
    elements += ready[i].end - ready[i].begin;
    const bool last = i + 1 == ready.size();
    // What one operation makes is not told in parts.
    if (!last && (elements < least_elements || ready[i + 1].operation == ready[i].operation)) continue;
    publish_together(group, told);
    elements = 0;
  }
  return told;
}

}  // namespace paceline::tensor
