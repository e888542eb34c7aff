#include "runtime/model/lookups.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"

namespace paceline::model {

Lookups::Lookups(std::int64_t max_occurrences) : max_occurrences_(static_cast<std::size_t>(max_occurrences)) {
  PL_CHECK(max_occurrences > 0 && max_occurrences < (std::int64_t{1} << 31), "occurrences are in [1, 2^31)");
  slots_.resize(std::bit_ceil(2 * max_occurrences_));
  ids_.reserve(max_occurrences_);
  places_.reserve(max_occurrences_);
  order_.reserve(max_occurrences_);
  rank_.reserve(max_occurrences_);
  sorted_.reserve(max_occurrences_);
}

std::uint64_t Lookups::bytes(std::int64_t max_occurrences) {
  const auto most = static_cast<std::uint64_t>(max_occurrences);
  constexpr std::uint64_t kEach = 2 * sizeof(std::uint64_t) + 3 * sizeof(std::uint32_t);
  return std::bit_ceil(2 * most) * sizeof(Slot) + most * kEach;
}

void Lookups::clear() {
  ids_.clear();
  places_.clear();
  if (++batch_ == 0) {  // the number came round
    std::fill(slots_.begin(), slots_.end(), Slot{});
    batch_ = 1;
  }
}

void Lookups::add(std::uint64_t id) {
  PL_CHECK(places_.size() < max_occurrences_, "a batch has no more occurrences than there is room for");
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t s = mix64(id) & mask;; s = (s + 1) & mask) {
    Slot& slot = slots_[s];
    if (slot.batch != batch_) {
      slot = {batch_, static_cast<std::uint32_t>(ids_.size())};
      ids_.push_back(id);
    } else if (ids_[slot.place] != id) {
      continue;
    }
    places_.push_back(slot.place);
    return;
  }
}

void Lookups::finish() {
  order_.resize(ids_.size());
  rank_.resize(ids_.size());
  sorted_.resize(ids_.size());
  std::iota(order_.begin(), order_.end(), std::uint32_t{0});
  std::sort(order_.begin(), order_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return ids_[a] < ids_[b]; });
  for (std::size_t i = 0; i < order_.size(); ++i) {
    rank_[order_[i]] = static_cast<std::uint32_t>(i);
    sorted_[i] = ids_[order_[i]];
  }
  ids_.swap(sorted_);
  for (std::uint32_t& place : places_) place = rank_[place];
}

}  // namespace paceline::model
