#pragma once

// From a row's hash to its number: extendible hashing (Fagin et al. 1979) with segments of cache lines. A
// directory, indexed by the upper bits of the hash's lower half, names segments of 256 buckets of one cache
// line; a row lies in its bucket or one of the three behind it. A segment without room splits in two: some
// ten microseconds of work, whatever the size of the table, and nothing else moves. The directory doubles
// now and then: 12 bytes an entry, at 10^7 rows one for about 610 of them, so that it has 192 KiB then.
//
// Only 32 bits of hash are kept: the caller knows the ids, and says which row is meant. Rows whose hashes
// collide beyond reason (somebody chose the ids so) lie in a list per segment. 10 to 20 bytes per row:
// 8 of a slot, and segments are full for 0.4 to 0.8. One thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/pserver/sparse/fetch_ahead.h"
#include "runtime/pserver/sparse/huge_block.h"

namespace paceline::pserver::sparse {

class RowIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint32_t kMaxRow = 0xfffffffd;

  RowIndex();

  // The row with this hash for which is_it(row) holds, or kNone.
  template <typename IsIt>
  std::uint32_t find(std::uint64_t hash, IsIt is_it) const;
  // REQUIRES: find() does not find it. RESOURCE_EXHAUSTED: no memory; it is as before.
  absl::Status insert(std::uint64_t hash, std::uint32_t row);
  // REQUIRES: it is there.
  void erase(std::uint64_t hash, std::uint32_t row);

  // The bucket where find() begins.
  void fetch(std::uint64_t hash) const { fetch_ahead(&home(hash)); }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t bytes() const;
  std::uint64_t splits() const { return splits_; }

 private:
  static constexpr std::size_t kSlots = 8;  // of a bucket
  static constexpr std::size_t kBuckets = 256;
  static constexpr std::size_t kWindow = 4;  // buckets where a row may lie
  static constexpr int kMaxDepth = 24;
  static constexpr std::uint32_t kGone = 0xffffffff;
  // Free slots are 0 in `row`, and lie behind the others: what was erased is kGone. A row is its number + 1.
  struct alignas(64) Bucket {
    std::array<std::uint32_t, kSlots> tag;
    std::array<std::uint32_t, kSlots> row;
  };
  struct Slot {
    std::uint32_t tag, row;
  };
  struct Segment {
    Bucket* buckets = nullptr;
    int depth = 0;
    std::uint32_t live = 0;
    std::vector<Slot> beyond;  // rows for which there was no room, and no sense in splitting
  };

  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }
  std::size_t entry_of(std::uint32_t tag) const {
    return depth_ == 0 ? 0 : static_cast<std::size_t>(tag >> (32 - depth_));
  }
  static std::size_t bucket_of(std::uint32_t tag) { return tag % kBuckets; }
  const Bucket& home(std::uint64_t hash) const {
    const std::uint32_t tag = tag_of(hash);
    return buckets_[entry_of(tag)][bucket_of(tag)];
  }
  absl::Status make_segment(int depth);
  static bool place(Segment& segment, Slot slot);
  void put(Segment& segment, Slot slot);
  absl::Status split(std::uint32_t tag);

  int depth_ = 0;                       // bits of the directory
  std::vector<Bucket*> buckets_;        // the directory, ...
  std::vector<std::uint32_t> numbers_;  // ... and the number of its segment
  std::vector<Segment> segments_;
  std::vector<HugeBlock> blocks_;
  std::size_t free_segments_ = 0;  // at the end of the last block
  std::vector<Slot> moving_;
  std::uint64_t rows_ = 0, splits_ = 0;
};

template <typename IsIt>
std::uint32_t RowIndex::find(std::uint64_t hash, IsIt is_it) const {
  const std::uint32_t tag = tag_of(hash);
  const std::size_t entry = entry_of(tag);
  const Bucket* const buckets = buckets_[entry];
  for (std::size_t k = 0; k < kWindow; ++k) {
    const Bucket& bucket = buckets[(bucket_of(tag) + k) % kBuckets];
    unsigned same = 0;
    for (std::size_t s = 0; s < kSlots; ++s) same |= static_cast<unsigned>(bucket.tag[s] == tag) << s;
    for (; same != 0; same &= same - 1) {
      const std::uint32_t row = bucket.row[static_cast<std::size_t>(__builtin_ctz(same))];
      if (row != 0 && row != kGone && is_it(row - 1)) return row - 1;
    }
    if (bucket.row[kSlots - 1] == 0) return kNone;
  }
  for (const Slot& slot : segments_[numbers_[entry]].beyond) {
    if (slot.tag == tag && is_it(slot.row - 1)) return slot.row - 1;
  }
  return kNone;
}

}  // namespace paceline::pserver::sparse
