#include "runtime/pserver/sparse/row_index.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"

namespace paceline::pserver::sparse {

namespace {

constexpr std::size_t kSegmentsPerBlock = 128;  // 2 MiB
// A segment that has no room for a row though it is this empty would be so after splitting, too.
constexpr std::uint32_t kWorthSplitting = 512;

}  // namespace

RowIndex::RowIndex() {
  // Without memory for the first segment insert() tells: until then nothing is found.
  static constinit Bucket empty[kBuckets + kWindow] = {};
  buckets_ = {empty};
  numbers_ = {0};
  segments_.emplace_back();
}

std::uint64_t RowIndex::bytes() const {
  return segments_.size() * (sizeof(Segment) + kBuckets * sizeof(Bucket)) +
         buckets_.size() * (sizeof(Bucket*) + sizeof(std::uint32_t));
}

absl::Status RowIndex::make_segment(int depth) {
  if (free_segments_ == 0) {
    PL_ASSIGN_OR_RETURN(HugeBlock block, HugeBlock::create(kSegmentsPerBlock * kBuckets * sizeof(Bucket)));
    blocks_.push_back(std::move(block));
    free_segments_ = kSegmentsPerBlock;
  }
  auto* const all = reinterpret_cast<Bucket*>(blocks_.back().data());
  Segment segment;
  segment.buckets = all + (kSegmentsPerBlock - free_segments_) * kBuckets;
  segment.depth = depth;
  --free_segments_;
  segments_.push_back(std::move(segment));
  return absl::OkStatus();
}

bool RowIndex::place(Segment& segment, Slot slot) {
  for (std::size_t k = 0; k < kWindow; ++k) {
    Bucket& bucket = segment.buckets[(bucket_of(slot.tag) + k) % kBuckets];
    for (std::size_t s = 0; s < kSlots; ++s) {
      if (bucket.row[s] != 0 && bucket.row[s] != kGone) continue;
      bucket.tag[s] = slot.tag;
      bucket.row[s] = slot.row;
      ++segment.live;
      return true;
    }
  }
  return false;
}

void RowIndex::put(Segment& segment, Slot slot) {
  if (!place(segment, slot)) segment.beyond.push_back(slot);
}

absl::Status RowIndex::insert(std::uint64_t hash, std::uint32_t row) {
  PL_CHECK(row <= kMaxRow, "numbers of rows fit");
  if (segments_[0].buckets == nullptr) {
    segments_.clear();
    const absl::Status made = make_segment(0);
    if (!made.ok()) {
      segments_.resize(1);
      return made;
    }
    buckets_[0] = segments_[0].buckets;
  }
  const Slot slot{tag_of(hash), row + 1};
  while (true) {
    Segment& segment = segments_[numbers_[entry_of(slot.tag)]];
    if (place(segment, slot)) break;
    if (segment.live < kWorthSplitting || segment.depth >= kMaxDepth) {
      segment.beyond.push_back(slot);
      break;
    }
    PL_RETURN_IF_ERROR(split(slot.tag));
  }
  ++rows_;
  return absl::OkStatus();
}

// Rows of the segment's upper half go to a new one; both are filled anew, so that what was erased is free.
absl::Status RowIndex::split(std::uint32_t tag) {
  const std::uint32_t number = numbers_[entry_of(tag)];
  PL_RETURN_IF_ERROR(make_segment(segments_[number].depth + 1));
  Segment& lower = segments_[number];
  Segment& upper = segments_.back();
  if (lower.depth == depth_) {
    ++depth_;
    const std::size_t before = buckets_.size();
    buckets_.resize(2 * before);
    numbers_.resize(2 * before);
    for (std::size_t k = before; k-- > 0;) {
      buckets_[2 * k] = buckets_[2 * k + 1] = buckets_[k];
      numbers_[2 * k] = numbers_[2 * k + 1] = numbers_[k];
    }
  }
  moving_.assign(lower.beyond.begin(), lower.beyond.end());
  lower.beyond.clear();
  for (std::size_t b = 0; b < kBuckets; ++b) {
    Bucket& bucket = lower.buckets[b];
    for (std::size_t s = 0; s < kSlots; ++s) {
      if (bucket.row[s] != 0 && bucket.row[s] != kGone) moving_.push_back({bucket.tag[s], bucket.row[s]});
    }
    bucket = Bucket{};
  }
  lower.live = 0;
  ++lower.depth;
  const std::uint32_t bit = std::uint32_t{1} << (32 - lower.depth);
  for (const Slot& slot : moving_) put((slot.tag & bit) != 0 ? upper : lower, slot);

  // The upper half of the segment's entries.
  const std::size_t count = std::size_t{1} << (depth_ - lower.depth);
  const std::size_t first = entry_of(tag) / (2 * count) * (2 * count) + count;
  const auto fresh = static_cast<std::uint32_t>(segments_.size() - 1);
  for (std::size_t k = first; k < first + count; ++k) {
    buckets_[k] = upper.buckets;
    numbers_[k] = fresh;
  }
  ++splits_;
  return absl::OkStatus();
}

void RowIndex::erase(std::uint64_t hash, std::uint32_t row) {
  const std::uint32_t tag = tag_of(hash);
  Segment& segment = segments_[numbers_[entry_of(tag)]];
  --rows_;
  for (std::size_t k = 0; k < kWindow; ++k) {
    Bucket& bucket = segment.buckets[(bucket_of(tag) + k) % kBuckets];
    for (std::size_t s = 0; s < kSlots; ++s) {
      if (bucket.row[s] != row + 1) continue;
      bucket.row[s] = kGone;
      --segment.live;
      return;
    }
  }
  const auto slot = std::find_if(segment.beyond.begin(), segment.beyond.end(),
                                 [&](const Slot& each) { return each.row == row + 1; });
  PL_CHECK(slot != segment.beyond.end(), "what is erased is there");
  segment.beyond.erase(slot);
}

}  // namespace paceline::pserver::sparse
