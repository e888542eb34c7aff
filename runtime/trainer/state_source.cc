#include "runtime/trainer/state_source.h"

#include <algorithm>

namespace paceline::trainer {

std::optional<Source> find_source(std::span<const Held> ranks) {
  const auto first = std::ranges::max_element(ranks, {}, &Held::step);
  if (first == ranks.end() || first->step < 0) return std::nullopt;
  Source source{.rank = static_cast<int>(first - ranks.begin()), .step = first->step};
  for (const Held& each : ranks) {
    if (each.step >= 0) source.saved_step = std::max(source.saved_step, each.saved_step);
    source.evaluates |= each.step == first->step && each.evaluates != 0;
  }
  return source;
}

}  // namespace paceline::trainer
