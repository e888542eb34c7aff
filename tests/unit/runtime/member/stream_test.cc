#include "runtime/member/stream.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace paceline::member {
namespace {

using namespace std::chrono_literals;

// As Linux repeats the first packet of a connection that nobody answers.
constexpr Duration kRepeats[] = {0s, 1s, 3s, 7s};

// How long after the network went away a member is connected again.
Duration back_after(Duration drop, Duration heartbeat) {
  Duration now = heartbeat + kDeafLimit;
  for (Duration limit = kFirstConnectLimit;; limit = std::min(2 * limit, kLongestConnectLimit)) {
    for (const Duration repeat : kRepeats) {
      if (repeat < limit && now + repeat >= drop) return now + repeat;
    }
    now += limit;
  }
}

TEST(StreamTest, AMemberThatWasCutOffForFourSecondsIsBackBeforeItIsMissed) {
  constexpr Duration kHeartbeat = 200ms, kMissedAfter = 5s;  // docs/protocol.md, "The root cause"
  for (Duration drop = 0s; drop <= 4s; drop += 10ms) {
    EXPECT_LT(back_after(drop, kHeartbeat), kMissedAfter) << drop / 1ms << " ms";
  }
}

}  // namespace
}  // namespace paceline::member
