#include "cli/run/stop_requests.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

using namespace std::chrono_literals;
using enum StopRequest;

constexpr TimePoint kBegin = TimePoint() + 1h;

TEST(StopRequests, SignalsThatComeTogetherAreOneRequest) {
  StopRequests stops;
  EXPECT_FALSE(stops.any());
  EXPECT_EQ(stops.add(kBegin), kInOrder);
  EXPECT_EQ(stops.add(kBegin), kSame);
  EXPECT_EQ(stops.add(kBegin + StopRequests::kTogether - 1ms), kSame);
  EXPECT_TRUE(stops.any());
  EXPECT_FALSE(stops.at_once());
  EXPECT_EQ(stops.add(kBegin + StopRequests::kTogether), kAtOnce);
  EXPECT_TRUE(stops.at_once());
  EXPECT_EQ(stops.add(kBegin + 1min), kSame);
}

TEST(StopRequests, TwoDeletesDoNotHastenEachOther) {
  StopRequests stops;
  EXPECT_EQ(stops.add(kBegin, 7), kInOrder);
  EXPECT_EQ(stops.add(kBegin + 2s, 8), kSame);
  EXPECT_FALSE(stops.at_once());
  EXPECT_EQ(stops.add(kBegin + 15s, 7), kAtOnce);
  EXPECT_EQ(stops.add(kBegin + 17s, 8), kSame);
  EXPECT_EQ(stops.deleters(), (std::set<std::int64_t>{7, 8}));
}

TEST(StopRequests, DeleteAfterCtrlCStopsInOrderAndCtrlCAfterDeleteAtOnce) {
  StopRequests stops;
  EXPECT_EQ(stops.add(kBegin), kInOrder);
  EXPECT_EQ(stops.add(kBegin + 2s, 7), kSame);
  EXPECT_EQ(stops.add(kBegin + 3s), kAtOnce);
}

}  // namespace
}  // namespace paceline::cli
