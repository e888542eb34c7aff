#include "runtime/pserver/sparse/hot_rows.h"

#include <algorithm>
#include <bit>

namespace paceline::pserver::sparse {

namespace {

constexpr std::size_t kSlots = 2 * HotRows::kCounters;
constexpr int kSlotBits = std::countr_zero(kSlots);

// Ids may be consecutive: the upper bits of a product are spread (Knuth's multiplicative hashing).
std::size_t first_slot(RowId id) {
  return static_cast<std::size_t>((id * 0x9e3779b97f4a7c15u) >> (64 - kSlotBits));
}

}  // namespace

HotRows::HotRows() : slots_(kSlots) {
  kept_.reserve(kCounters);
  counts_.reserve(kCounters);
}

void HotRows::count(std::span<const RowId> ids) {
  std::size_t k = 0;
  for (; k < ids.size() && counted_ < kExact; ++k, ++counted_) add(ids[k], 1);
  for (k += skip_; k < ids.size(); k += kSample) add(ids[k], kSample);
  skip_ = k - ids.size();
}

HotRows::Row& HotRows::slot_of(RowId id) {
  std::size_t slot = first_slot(id);
  while (slots_[slot].pulls != 0 && slots_[slot].id != id) slot = (slot + 1) % kSlots;
  return slots_[slot];
}

void HotRows::add(RowId id, std::int64_t pulls) {
  Row& row = slot_of(id);
  if (row.pulls == 0) ++used_;
  row.id = id;
  row.pulls += pulls;
  if (used_ == kCounters) purge();
}

void HotRows::purge() {
  counts_.clear();
  for (const Row& row : slots_) {
    if (row.pulls != 0) counts_.push_back(row.pulls);
  }
  const auto middle = counts_.begin() + static_cast<std::ptrdiff_t>(counts_.size() / 2);
  std::nth_element(counts_.begin(), middle, counts_.end());
  error_ += *middle;
  kept_.clear();
  for (const Row& row : slots_) {
    if (row.pulls > *middle) kept_.push_back({row.id, row.pulls - *middle});
  }
  std::fill(slots_.begin(), slots_.end(), Row{});
  for (const Row& row : kept_) slot_of(row.id) = row;
  used_ = kept_.size();
}

std::vector<HotRows::Row> HotRows::hottest(std::size_t most) const {
  std::vector<Row> rows;
  for (const Row& row : slots_) {
    if (row.pulls > error_) rows.push_back(row);
  }
  const std::size_t told = std::min(most, rows.size());
  std::partial_sort(
      rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(told), rows.end(),
      [](const Row& a, const Row& b) { return a.pulls != b.pulls ? a.pulls > b.pulls : a.id < b.id; });
  rows.resize(told);
  return rows;
}

}  // namespace paceline::pserver::sparse
