#include "runtime/trainer/member_devices.h"

#include <algorithm>

#include "base/text.h"
#include "runtime/collective/fault.h"

namespace paceline::trainer {

static_assert(sizeof(MemberDevice) == kMemberDeviceWords * sizeof(std::int64_t), "nothing between its parts");

MemberDevice member_device(bool keeps_state, bool exchanges, std::string_view name) {
  MemberDevice device{.keeps_state = keeps_state ? 1 : 0, .exchanges = exchanges ? 1 : 0};
  std::copy_n(name.begin(), std::min(name.size(), device.name.size()), device.name.begin());
  return device;
}

std::string why_by_hosts(std::span<const MemberDevice> ranks, int rank, std::string_view why_not) {
  for (std::size_t a = 0; a < ranks.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (ranks[a].name == ranks[b].name && ranks[a].name[0] != '\0')
        return str_cat("rank ", b, " and rank ", a, " have the same device, and each needs one of its own");
    }
  }
  if (ranks[static_cast<std::size_t>(rank)].exchanges == 0 && !why_not.empty()) return std::string(why_not);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].exchanges == 0)
      return str_cat("rank ", r, " has nothing that sends them from its device; its log says why");
  }
  return {};
}

Opening opening_of(const absl::Status& opened, int rank) {
  if (opened.ok()) return Opening::kOpened;
  if (absl::IsFailedPrecondition(opened)) return Opening::kRefused;
  return collective::faulty_rank(opened).value_or(rank) == rank ? Opening::kFailed : Opening::kEnded;
}

NotOpened why_not_opened(std::span<const Opening> ranks, const collective::Group& group,
                         const absl::Status& opened) {
  const auto worst = std::ranges::max_element(ranks);  // the first of those
  if (*worst == Opening::kOpened) return {};
  const bool fault = !std::ranges::all_of(ranks, [](Opening one) { return one == Opening::kRefused; });
  const Opening mine = ranks[static_cast<std::size_t>(group.rank)];
  if (mine >= Opening::kRefused || mine == *worst) return {std::string(opened.message()), fault};
  const auto rank = static_cast<std::size_t>(worst - ranks.begin());
  return {str_cat("rank ", rank, " (", group.members[rank].member_id,
                  ") could not open what sends them from device to device; its log says why"),
          fault};
}

std::string why_state_on_hosts(std::span<const MemberDevice> ranks) {
  const auto found = std::ranges::find(ranks, 0, &MemberDevice::keeps_state);
  return found == ranks.end() ? "" : str_cat("rank ", found - ranks.begin(), " computes on processors");
}

int members_on_device(std::span<const MemberDevice> ranks, int rank) {
  const auto& name = ranks[static_cast<std::size_t>(rank)].name;
  if (name[0] == '\0') return 0;
  return static_cast<int>(std::ranges::count(ranks, name, &MemberDevice::name));
}

}  // namespace paceline::trainer
