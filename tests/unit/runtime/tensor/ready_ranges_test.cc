#include "runtime/tensor/ready_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/rng.h"

namespace paceline::tensor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// {operation, begin, end}
std::vector<std::tuple<std::size_t, std::size_t, std::size_t>> gathered(const std::vector<ReadyRange>& ready,
                                                                        std::size_t least) {
  std::vector<std::tuple<std::size_t, std::size_t, std::size_t>> result;
  for (const ReadyRange& r : gather_ranges(ready, least)) result.emplace_back(r.operation, r.begin, r.end);
  return result;
}

TEST(ReadyRanges, AreToldWhenThereAreEnoughOfThem) {
  const std::vector<ReadyRange> ready = {{3, 80, 100}, {4, 60, 80}, {6, 50, 60}, {7, 0, 50}};
  EXPECT_THAT(gathered(ready, 1), ElementsAre(std::tuple(3, 80, 100), std::tuple(4, 60, 80),
                                              std::tuple(6, 50, 60), std::tuple(7, 0, 50)));
  EXPECT_THAT(gathered(ready, 40), ElementsAre(std::tuple(4, 60, 100), std::tuple(7, 0, 60)));
  EXPECT_THAT(gathered(ready, 45), ElementsAre(std::tuple(6, 50, 100), std::tuple(7, 0, 50)));
  EXPECT_THAT(gathered(ready, 1000), ElementsAre(std::tuple(7, 0, 100)));
  EXPECT_THAT(gathered({}, 10), IsEmpty());
}

TEST(ReadyRanges, SeparateRangesStaySeparate) {
  const std::vector<ReadyRange> ready = {{1, 50, 60}, {2, 90, 100}, {3, 0, 50}, {4, 60, 90}};
  EXPECT_THAT(gathered(ready, 20), ElementsAre(std::tuple(2, 90, 100), std::tuple(2, 50, 60),
                                               std::tuple(3, 0, 50), std::tuple(4, 60, 90)));
}

TEST(ReadyRanges, RangesOfOneOperationAreReportedAtOnce) {
  const std::vector<ReadyRange> ready = {{5, 90, 100}, {5, 10, 90}, {6, 0, 10}};
  EXPECT_THAT(gathered(ready, 5), ElementsAre(std::tuple(5, 10, 100), std::tuple(6, 0, 10)));
}

TEST(ReadyRanges, CoverTheSameElementsAndAreNeverToldTooEarly) {
  Rng rng(1, 0);
  for (int round = 0; round < 300; ++round) {
    std::vector<ReadyRange> ready;
    for (std::size_t at = 0; at < 400;) {
      const std::size_t end = at + 1 + rng.below(60);
      ready.push_back({0, at, end});
      at = end;
    }
    for (std::size_t i = ready.size(); i > 1; --i) std::swap(ready[i - 1], ready[rng.below(i)]);
    for (std::size_t i = 1; i < ready.size(); ++i) ready[i].operation = ready[i - 1].operation + rng.below(3);
    std::vector<std::size_t> made(500, 0), told(500, 0);
    std::size_t elements = 0;
    for (const ReadyRange& r : ready) {
      elements = std::max(elements, r.end);
      for (std::size_t e = r.begin; e < r.end; ++e) made[e] = r.operation;
    }
    std::vector<int> times(500, 0);
    std::size_t before = 0;
    for (const ReadyRange& r : gather_ranges(ready, 1 + rng.below(150))) {
      EXPECT_GE(r.operation, before);
      before = r.operation;
      for (std::size_t e = r.begin; e < r.end; ++e) {
        ++times[e];
        EXPECT_GE(r.operation, made[e]);
      }
    }
    for (std::size_t e = 0; e < 500; ++e) ASSERT_EQ(times[e], e < elements ? 1 : 0) << e;
  }
}

}  // namespace
}  // namespace paceline::tensor
