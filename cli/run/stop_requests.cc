#include "cli/run/stop_requests.h"

#include <utility>

namespace paceline::cli {

StopRequest StopRequests::add(TimePoint now, std::optional<std::int64_t> deleter) {
  const bool first_of_deleter = deleter && deleters_.insert(*deleter).second;
  if (!first_) {
    first_ = now;
    return StopRequest::kInOrder;
  }
  const bool same = deleter ? first_of_deleter : now - *first_ < kTogether;
  if (same || std::exchange(at_once_, true)) return StopRequest::kSame;
  return StopRequest::kAtOnce;
}

}  // namespace paceline::cli
