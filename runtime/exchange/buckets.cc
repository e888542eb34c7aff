#include "runtime/exchange/buckets.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"

namespace paceline::exchange {

std::vector<Bucket> cut_buckets(std::size_t elements, std::size_t bucket_elements) {
  PL_CHECK(elements > 0, "a gradient has elements");
  const std::size_t least = (elements + kMaxBuckets - 1) / kMaxBuckets;
  std::size_t size = std::max({bucket_elements, least, std::size_t{1}});
  size = (size + kBucketAlignment - 1) / kBucketAlignment * kBucketAlignment;

  std::vector<Bucket> buckets;
  buckets.reserve(elements / size + 1);
  std::size_t end = elements;
  while (end > size + size / 4) {
    buckets.push_back({end - size, end});
    end -= size;
  }
  buckets.push_back({0, end});
  return buckets;
}

ReadyTracker::ReadyTracker(std::vector<Bucket> buckets)
    : buckets_(std::move(buckets)),
      elements_(buckets_.empty() ? 0 : buckets_.front().end),
      missing_(buckets_.size()) {
  PL_CHECK(!buckets_.empty() && buckets_.back().begin == 0, "buckets cover the vector");
  reset();
}

void ReadyTracker::reset() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) missing_[i] = buckets_[i].size();
  startable_ = 0;
}

// Buckets descend: the first whose begin is not past `element` holds it.
std::size_t ReadyTracker::bucket_of(std::size_t element) const {
  const auto at = std::partition_point(buckets_.begin(), buckets_.end(),
                                       [element](const Bucket& b) { return b.begin > element; });
  return static_cast<std::size_t>(at - buckets_.begin());
}

absl::Status ReadyTracker::mark(std::size_t begin, std::size_t end) {
  if (begin > end || end > elements_) {
    return absl::InvalidArgumentError(
        str_cat("range [", begin, ", ", end, ") of a gradient of ", elements_, " elements"));
  }
  if (begin == end) return absl::OkStatus();
  const std::size_t first = bucket_of(end - 1), last = bucket_of(begin);
  const auto part = [&](std::size_t i) {
    return std::min(end, buckets_[i].end) - std::max(begin, buckets_[i].begin);
  };
  for (std::size_t i = first; i <= last; ++i) {
    if (part(i) > missing_[i]) {
      return absl::InvalidArgumentError(
          str_cat("range [", begin, ", ", end, ") was declared ready twice in one step (bucket ", i, ")"));
    }
  }
  for (std::size_t i = first; i <= last; ++i) missing_[i] -= part(i);
  while (startable_ < buckets_.size() && missing_[startable_] == 0) ++startable_;
  return absl::OkStatus();
}

}  // namespace paceline::exchange
