#include "controller/queue/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_clock.h"

namespace paceline::queue {
namespace {

using namespace std::chrono_literals;

TEST(WorkQueueTest, DelayedKeysFollowTheInjectedClock) {
  FakeClock clock;
  WorkQueue queue(clock);
  queue.add_after("a", 1h);
  EXPECT_EQ(queue.get(0s), std::nullopt);
  clock.advance(1h);
  EXPECT_EQ(queue.get(0s), "a");
  queue.done("a");
}

struct Heard final : QueueObserver {
  void on_adds(std::uint64_t count) override { adds += count; }
  void on_taken(Duration time) override { waited.push_back(time); }
  void on_done(Duration time) override { worked.push_back(time); }
  void on_retry() override { ++retries; }
  std::uint64_t adds = 0;
  int retries = 0;
  std::vector<Duration> waited, worked;
};

TEST(WorkQueueTest, TheObserverHearsOfWaitsAndWork) {
  FakeClock clock;
  Heard heard;
  WorkQueue queue(clock, {}, &heard);
  queue.add("a");
  queue.add("a");
  EXPECT_EQ(heard.adds, 1u) << "it waited already";
  EXPECT_EQ(queue.size(), 1u);
  clock.advance(3s);
  ASSERT_EQ(queue.get(0s), "a");
  queue.add("a");
  EXPECT_EQ(heard.adds, 2u);
  clock.advance(2s);
  queue.done("a");
  queue.add_rate_limited("b");
  EXPECT_EQ(heard.retries, 1);
  clock.advance(1s);
  ASSERT_EQ(queue.get(0s), "a");
  ASSERT_EQ(queue.get(0s), "b");
  EXPECT_EQ(heard.adds, 3u) << "a delayed key begins to wait when it is due";
  EXPECT_EQ(heard.waited, (std::vector<Duration>{3s, 3s, 0s}));
  EXPECT_EQ(heard.worked, (std::vector<Duration>{2s}));
  queue.done("a");
  queue.done("b");
}

TEST(WorkQueueTest, BackOffIsForgotten) {
  FakeClock clock;
  WorkQueue queue(clock);
  for (int i = 1; i <= 3; ++i) {
    queue.add_rate_limited("a");
    EXPECT_EQ(queue.failures("a"), i);
    EXPECT_EQ(queue.get(0s), std::nullopt);
    clock.advance(1s);
    ASSERT_EQ(queue.get(0s), "a");
    queue.done("a");
  }
  queue.forget("a");
  EXPECT_EQ(queue.failures("a"), 0);
}

TEST(WorkQueueTest, ShutDownWakesWhoWaits) {
  SystemClock clock;
  WorkQueue queue(clock);
  std::atomic<int> woken = 0;
  {
    std::vector<std::jthread> waiters;
    for (int i = 0; i < 3; ++i) {
      waiters.emplace_back([&] {
        EXPECT_EQ(queue.get(1h), std::nullopt);
        ++woken;
      });
    }
    queue.shut_down();
  }
  EXPECT_EQ(woken, 3);
  queue.add("a");
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_TRUE(queue.is_shut_down());
}

// Many workers: every key is worked on by one at a time, and the last addition is always followed by a look.
TEST(WorkQueueTest, OneWorkerPerKeyAndNothingIsLost) {
  SystemClock clock;
  WorkQueue queue(clock);
  constexpr int kKeys = 5, kRounds = 200;
  std::atomic<int> wanted[kKeys] = {}, seen[kKeys] = {}, inside[kKeys] = {};
  std::atomic<int> finished = 0;
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < 4; ++w) {
      threads.emplace_back([&] {
        while (const auto key = queue.get(1h)) {
          const int k = (*key)[0] - '0';
          EXPECT_EQ(inside[k].fetch_add(1), 0);
          const int value = wanted[k].load();
          if (seen[k].exchange(value) < kRounds && value == kRounds && ++finished == kKeys) queue.shut_down();
          inside[k].fetch_sub(1);
          queue.done(*key);
        }
      });
    }
    for (int r = 0; r < kRounds; ++r) {
      for (int k = 0; k < kKeys; ++k) {
        ++wanted[k];
        queue.add(std::to_string(k));
      }
    }
  }
  for (int k = 0; k < kKeys; ++k) EXPECT_EQ(seen[k], kRounds);
}

}  // namespace
}  // namespace paceline::queue
