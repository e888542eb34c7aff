#include "controller/coordinator/core_hang.h"

#include <algorithm>
#include <utility>

namespace paceline::coordinator {

const char* part_name(Part part) {
  constexpr const char* kNames[] = {"no part", "input", "compute", "exchange", "update"};
  return kNames[static_cast<std::size_t>(part)];
}

void Pace::add(Duration own) {
  ++steps_;
  ++in_view_;
  last_ = own;
  block_ = std::max(block_, own);
  if (++in_block_ < kPaceSteps) return;
  block_before_ = std::exchange(block_, Duration::zero());
  in_block_ = 0;
}

Duration Pace::longest() const {
  return std::max(block_, block_before_);
}

Duration hang_bound(std::span<const AtWork> members, Duration least) {
  Duration longest{};
  for (const AtWork& member : members) longest = std::max(longest, member.pace.longest());
  return std::max(least, kHangFactor * longest);
}

Hung find_hung(std::span<const AtWork> members, Duration least) {
  const Duration bound = hang_bound(members, least);
  const auto is_stuck = [](const AtWork& member, Duration limit) {
    const bool own =
        member.part == Part::kInput || member.part == Part::kCompute || member.part == Part::kUpdate;
    return own && member.in_part > limit;
  };
  const auto slots_of = [&](auto condition) {
    std::vector<int> slots;
    for (const AtWork& member : members) {
      if (condition(member)) slots.push_back(member.slot);
    }
    return slots;
  };
  const auto waits = [&](const AtWork& m) {
    return !m.behind && m.part == Part::kExchange && m.in_part > bound;
  };
  if (members.size() == 1) {
    const AtWork& alone = members[0];
    const bool known = alone.behind ? alone.pace.is_known() : alone.pace.is_known_in_view();
    if (known && is_stuck(alone, kAloneFactor * bound)) return {{alone.slot}, {}};
    return {};
  }
  Step step = -1;  // that some wait in: in a ring there is one
  for (const AtWork& member : members) {
    if (waits(member)) step = std::max(step, member.step);
  }
  const auto takes_it = [&](const AtWork& m) {
    return !m.behind && m.step == step && m.pace.is_known_in_view();
  };
  const bool hangs =
      std::ranges::any_of(members, [&](const AtWork& m) { return takes_it(m) && is_stuck(m, bound); });
  Hung found;
  if (hangs) {
    found.waiting = slots_of([&](const AtWork& m) { return waits(m) && m.step == step; });
    found.hung = slots_of([&](const AtWork& m) { return takes_it(m) && is_stuck(m, bound / 2); });
  } else {
    found.waiting = slots_of([](const AtWork& m) { return !m.behind; });
    found.hung =
        slots_of([&](const AtWork& m) { return m.behind && m.pace.is_known() && is_stuck(m, bound); });
  }
  if (found.hung.empty() || found.hung.size() > found.waiting.size()) return {};
  return found;
}

}  // namespace paceline::coordinator
