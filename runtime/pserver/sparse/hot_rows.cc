#include "runtime/pserver/sparse/hot_rows.h"

#include <algorithm>

namespace paceline::pserver::sparse {

void HotRows::count(std::span<const RowId> ids) {
  std::size_t k = 0;
  for (; k < ids.size() && counted_ < kExact; ++k, ++counted_) add(ids[k], 1);
  for (k += skip_; k < ids.size(); k += kSample) add(ids[k], kSample);
  skip_ = k - ids.size();
}

void HotRows::add(RowId id, std::int64_t pulls) {
  const auto end = ids_.begin() + static_cast<std::ptrdiff_t>(used_);
  const auto found = std::find(ids_.begin(), end, id);
  if (found != end) {
    pulls_[static_cast<std::size_t>(found - ids_.begin())] += pulls;
  } else if (used_ < kCounters) {
    ids_[used_] = id;
    pulls_[used_++] = pulls;
  } else {
    const auto least = std::min_element(pulls_.begin(), pulls_.end());
    ids_[static_cast<std::size_t>(least - pulls_.begin())] = id;
    *least += pulls;
  }
}

std::vector<HotRows::Row> HotRows::hottest(std::size_t most) const {
  std::vector<Row> rows;
  for (std::size_t k = 0; k < used_; ++k) rows.push_back({ids_[k], pulls_[k]});
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.pulls != b.pulls ? a.pulls > b.pulls : a.id < b.id; });
  if (rows.size() > most) rows.resize(most);
  return rows;
}

}  // namespace paceline::pserver::sparse
