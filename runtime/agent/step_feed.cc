#include "runtime/agent/step_feed.h"

#include <algorithm>

#include "base/text.h"

namespace paceline::agent {

namespace {

// 1, 10, 100, ...
bool is_told(std::int64_t count) {
  while (count % 10 == 0) count /= 10;
  return count == 1;
}

}  // namespace

std::vector<StepLine> StepFeed::take(std::string_view datagram) {
  std::vector<StepLine> steps;
  while (!datagram.empty()) {
    const std::size_t end = std::min(datagram.find('\n'), datagram.size());
    const std::string_view text = datagram.substr(0, end);
    datagram.remove_prefix(std::min(end + 1, datagram.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    absl::StatusOr<StepLine> line = parse_step_line(text);
    if (!line.ok()) {
      warn(kBad, str_cat("a line of its program tells of no step: ", line.status().message()));
      continue;
    }
    if (line->step <= newest_) {
      warn(kOld, str_cat("its program tells of step ", line->step, " after step ", newest_,
                         ": steps rise, and one process of a member tells of them"));
      continue;
    }
    if (!line->unknown.empty())
      warn(kUnknown, str_cat("its program tells \"", line->unknown,
                             "\" of a step, which nobody knows here; the rest of the line counts"));
    newest_ = line->step;
    steps.push_back(*std::move(line));
  }
  return steps;
}

void StepFeed::warn(Kind kind, const std::string& what) {
  const std::int64_t count = ++counts_[kind];
  if (is_told(count))
    warnings_.push_back(count == 1 ? what : str_cat(what, " (", count, " of these so far)"));
}

}  // namespace paceline::agent
