#pragma once

// The flat gradient cut into buckets, and which of them are complete. Pure; one thread at a time.
//
// Bucket 0 ends at the vector's end and is the first to be complete, because back-propagation finishes the
// last layers first; the last bucket begins at 0. Buckets are started in the order of their numbers and no
// other, so that all ranks start the same bucket next, whatever the order in which their ranges became ready.
//
//   elements  0 ........................ N
//   buckets   [ 3 ][  2  ][  1  ][  0  ]        3: what is left over (joined to 2 where it is small)

#include <cstddef>
#include <vector>

#include "absl/status/status.h"

namespace paceline::exchange {

struct Bucket {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
};

// Where buckets begin is a multiple of this many elements from the vector's end: 64 bytes of floats.
inline constexpr std::size_t kBucketAlignment = 16;
inline constexpr std::size_t kMaxBuckets = 1 << 20;

// Cuts [0, elements) into buckets of `bucket_elements`, rounded up to kBucketAlignment. What is left over is
// a bucket of its own, or part of its neighbour where it is less than a quarter of one. With more than
// kMaxBuckets the buckets are made larger. At least one element, at least one bucket.
std::vector<Bucket> cut_buckets(std::size_t elements, std::size_t bucket_elements);

// Which buckets of one step are complete.
class ReadyTracker {
 public:
  explicit ReadyTracker(std::vector<Bucket> buckets);

  // A new step: nothing is ready.
  void reset();
  // Elements [begin, end) are final. INVALID_ARGUMENT, and nothing changes: not within the vector, or more
  // elements in a bucket than it has (a range was declared twice).
  absl::Status mark(std::size_t begin, std::size_t end);

  // Buckets [0, startable()) may be started: they and all before them are complete.
  std::size_t startable() const { return startable_; }
  bool complete() const { return startable_ == buckets_.size(); }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::size_t elements() const { return elements_; }

 private:
  std::size_t bucket_of(std::size_t element) const;

  std::vector<Bucket> buckets_;
  std::size_t elements_;
  std::vector<std::size_t> missing_;  // elements of each bucket that aren't ready
  std::size_t startable_ = 0;
};

}  // namespace paceline::exchange
