#include "runtime/pserver/shard_map.h"

#include <algorithm>

#include "base/check.h"

namespace paceline::pserver {

ShardMap::ShardMap(std::size_t elements, int servers, std::size_t slice_bytes)
    : elements_(elements),
      servers_(servers),
      slice_bytes_(slice_bytes > 0 ? slice_bytes : kDefaultSliceBytes),
      of_server_(static_cast<std::size_t>(servers)),
      shares_(static_cast<std::size_t>(servers)) {
  PL_CHECK(servers > 0, "weights lie on at least one server");
  const auto m = static_cast<std::size_t>(servers);
  const std::size_t units = (elements + kAlignment - 1) / kAlignment;
  const std::size_t most = std::max<std::size_t>(1, slice_bytes_ / (kAlignment * sizeof(float)));
  const std::size_t rounds = std::max<std::size_t>(1, (units + most * m - 1) / (most * m));
  const std::size_t slices = rounds * m, base = units / slices, longer = units % slices;
  std::size_t end = units;  // of slice k, in units
  for (std::size_t k = 0; k < slices; ++k) {
    const std::size_t begin = end - base - (k < longer ? 1 : 0);
    const std::size_t server = k % m;
    const std::size_t from = begin * kAlignment, to = std::min(end * kAlignment, elements);
    const Slice slice{static_cast<int>(server), from, shares_[server], to - from};
    order_.push_back(slice);
    of_server_[server].push_back(slice);
    shares_[server] += slice.count;
    end = begin;
  }
}

std::span<const Slice> ShardMap::slices(int server) const {
  return of_server_[static_cast<std::size_t>(server)];
}

std::size_t ShardMap::share(int server) const {
  return shares_[static_cast<std::size_t>(server)];
}

std::size_t ShardMap::first_below(std::size_t end) const {
  const auto found = std::partition_point(order_.begin(), order_.end(),
                                          [&](const Slice& slice) { return slice.begin >= end; });
  return static_cast<std::size_t>(found - order_.begin());
}

}  // namespace paceline::pserver
