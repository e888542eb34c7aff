#pragma once

// A coordination.k8s.io/v1 Lease's spec as a value. Pure.

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace paceline::lease {

struct LeaseRecord {
  std::string holder;  // empty: nobody's
  std::int64_t duration_seconds = 0;
  WallTime acquired{}, renewed{};  // by the writer's clock: for people, and to see that something changed
  std::int64_t transitions = 0;
  std::string address;  // of the holder, for members: host:port; empty: not known
  bool operator==(const LeaseRecord&) const = default;
};

}  // namespace paceline::lease
