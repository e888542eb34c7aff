#include "runtime/nccl/origin.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace paceline::nccl {

Origin origin_of(std::span<const std::optional<Parent>> parents) {
  Origin origin;
  const auto init = [&origin](std::string why) {
    origin.why = std::move(why);
    return origin;
  };
  const bool any = std::ranges::any_of(parents, [](const auto& parent) { return parent.has_value(); });
  for (std::size_t r = 0; r < parents.size(); ++r) {
    if (!any) return init("no rank has an earlier one");
    if (!parents[r].has_value()) return init(str_cat("rank ", r, " has no earlier one"));
    if (parents[r]->view != parents[0]->view || parents[r]->world != parents[0]->world) {
      return init(str_cat("rank ", r, " has that of view ", parents[r]->view.value,
                          ", and rank 0 that of view ", parents[0]->view.value));
    }
    if (r > 0 && parents[r]->rank <= parents[r - 1]->rank) return init("the ranks are in another order");
  }
  std::size_t next = 0;
  for (int rank = 0; rank < parents[0]->world; ++rank) {
    if (next < parents.size() && parents[next]->rank == rank) {
      ++next;
    } else {
      origin.excluded.push_back(rank);
    }
  }
  if (origin.excluded.empty()) return init("no rank has left");
  origin.shrinks = true;
  origin.view = parents[0]->view;
  return origin;
}

}  // namespace paceline::nccl
