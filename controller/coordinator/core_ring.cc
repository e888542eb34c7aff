#include "controller/coordinator/core_ring.h"

#include <algorithm>
#include <tuple>

namespace paceline::coordinator {

std::vector<int> choose_ring(std::vector<RingMember> there, int most) {
  const auto order = [](const RingMember& each) {
    return std::tuple(!each.chief, !each.in_view, !each.holds, each.number);
  };
  std::ranges::sort(there, {}, order);
  std::vector<int> chosen;
  for (const RingMember& each : there) {
    if (static_cast<int>(chosen.size()) < most) chosen.push_back(each.number);
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace paceline::coordinator
