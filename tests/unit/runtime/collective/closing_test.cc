#include "runtime/collective/closing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace paceline::collective {
namespace {

TEST(Closing, TheFirstReasonStays) {
  Closing closing;
  EXPECT_FALSE(closing.is_closed());
  EXPECT_TRUE(closing.reason().ok());
  EXPECT_TRUE(closing.close(absl::UnavailableError("first")));
  EXPECT_FALSE(closing.close(absl::UnavailableError("second")));
  EXPECT_EQ(closing.reason(), absl::UnavailableError("first"));
}

TEST(Closing, WhoeverClosedReadsAReasonAlsoWhereAnotherWasFirst) {
  struct Round {
    Closing closing;
    std::atomic<int> there{0};
  };
  std::vector<Round> rounds(50'000);
  std::atomic<int> without_reason{0};
  const auto close_all = [&] {
    for (Round& round : rounds) {
      round.there.fetch_add(1);
      for (int spin = 0; round.there.load() < 2; ++spin) {
        if (spin > 1000) std::this_thread::yield();
      }
      round.closing.close(absl::UnavailableError("a peer is gone"));
      if (round.closing.reason().ok()) without_reason.fetch_add(1);
    }
  };
  {
    std::jthread other(close_all);
    close_all();
  }
  EXPECT_EQ(without_reason.load(), 0);
}

}  // namespace
}  // namespace paceline::collective
