#include "runtime/exchange/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace paceline::exchange {
namespace {

TEST(CutBuckets, ExamplesFromTheEndToTheBegin) {
  struct Case {
    std::size_t elements, size;
    std::vector<std::size_t> sizes;
  };
  for (const Case& c : std::vector<Case>{{1, 16, {1}},
                                         {16, 16, {16}},
                                         {20, 16, {20}},     // a remainder below a quarter joins
                                         {21, 16, {16, 5}},  // a larger one is a bucket of its own
                                         {100, 32, {32, 32, 36}},
                                         {100, 1, {16, 16, 16, 16, 16, 20}},  // rounded up to the alignment
                                         {100, 1000, {100}}}) {
    const auto buckets = cut_buckets(c.elements, c.size);
    std::vector<std::size_t> sizes;
    for (const Bucket& b : buckets) sizes.push_back(b.size());
    EXPECT_EQ(sizes, c.sizes) << c.elements << " by " << c.size;
  }
}

TEST(CutBuckets, CoverTheVectorWithoutOverlapWhateverTheSizes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed, 1);
    const std::size_t elements = 1 + rng.below(100'000), size = 1 + rng.below(20'000);
    std::size_t end = elements;
    for (const Bucket& b : cut_buckets(elements, size)) {
      ASSERT_EQ(b.end, end) << "seed " << seed;
      ASSERT_LT(b.begin, b.end) << "seed " << seed;
      end = b.begin;
    }
    ASSERT_EQ(end, 0u) << "seed " << seed;
  }
}

TEST(CutBuckets, TheirNumberIsBounded) {
  EXPECT_LE(cut_buckets(std::size_t{1} << 36, 1).size(), kMaxBuckets);
}

// Random cuts of the vector into ranges, in a random order: a bucket is startable exactly when an oracle that
// looks at every element says so.
TEST(ReadyTracker, BucketsBecomeStartableInOrderWhateverTheOrderOfRanges) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 2);
    const std::size_t elements = 1 + rng.below(600);
    ReadyTracker tracker(cut_buckets(elements, 1 + rng.below(200)));
    for (int step = 0; step < 2; ++step) {
      std::vector<std::pair<std::size_t, std::size_t>> ranges;
      for (std::size_t at = 0; at < elements;) {
        const std::size_t end = std::min<std::size_t>(elements, at + rng.below(90));
        ranges.emplace_back(at, end);  // empty ones among them
        at = end;
      }
      for (std::size_t i = ranges.size(); i > 1; --i) std::swap(ranges[i - 1], ranges[rng.below(i)]);

      tracker.reset();
      std::vector<bool> ready(elements, false);
      for (const auto& [begin, end] : ranges) {
        ASSERT_TRUE(tracker.mark(begin, end).ok());
        for (std::size_t e = begin; e < end; ++e) ready[e] = true;
        std::size_t expected = 0;
        for (const Bucket& b : tracker.buckets()) {
          bool whole = true;
          for (std::size_t e = b.begin; e < b.end; ++e) whole = whole && ready[e];
          if (!whole) break;
          ++expected;
        }
        ASSERT_EQ(tracker.startable(), expected);
      }
      EXPECT_TRUE(tracker.complete());
    }
  }
}

TEST(ReadyTracker, RefusesWhatCannotBeAndStaysAsItWas) {
  ReadyTracker tracker(cut_buckets(64, 16));
  EXPECT_EQ(tracker.mark(0, 65).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tracker.mark(5, 4).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(tracker.mark(40, 64).ok());
  EXPECT_EQ(tracker.startable(), 1u);
  EXPECT_EQ(tracker.mark(30, 60).code(), absl::StatusCode::kInvalidArgument);  // [40, 60) twice
  ASSERT_TRUE(tracker.mark(0, 40).ok());
  EXPECT_TRUE(tracker.complete());
}

}  // namespace
}  // namespace paceline::exchange
