#include "controller/queue/queue_core.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/rng.h"
#include "controller/queue/back_off.h"
#include "controller/queue/delay_heap.h"
#include "controller/queue/token_bucket.h"

namespace paceline::queue {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Duration(1s)};

TEST(BackOffTest, DoublesUpToTheLongest) {
  BackOff back_off({5ms, 30ms});
  EXPECT_EQ(back_off.next("a"), 5ms);
  EXPECT_EQ(back_off.next("a"), 10ms);
  EXPECT_EQ(back_off.next("a"), 20ms);
  EXPECT_EQ(back_off.next("a"), 30ms);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(back_off.next("a"), 30ms);
  EXPECT_EQ(back_off.next("b"), 5ms) << "each key has its own";
  EXPECT_EQ(back_off.failures("a"), 1004);
  back_off.forget("a");
  EXPECT_EQ(back_off.failures("a"), 0);
  EXPECT_EQ(back_off.next("a"), 5ms);
}

TEST(TokenBucketTest, BurstThenRate) {
  TokenBucket bucket(10, 3, kStart);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.reserve(kStart), 0ms);
  EXPECT_EQ(bucket.reserve(kStart), 100ms);
  EXPECT_EQ(bucket.reserve(kStart), 200ms);
  EXPECT_EQ(bucket.reserve(kStart + 300ms), 0ms);
  EXPECT_EQ(bucket.reserve(kStart + 100s), 0ms) << "a long rest fills it";
  EXPECT_EQ(bucket.reserve(kStart + 100s), 0ms);
  EXPECT_EQ(bucket.reserve(kStart + 100s), 0ms);
  EXPECT_GT(bucket.reserve(kStart + 100s), 0ms) << "but not beyond its burst";
}

TEST(DelayHeapTest, EarliestFirstAndEarlierWins) {
  DelayHeap heap;
  heap.add("a", kStart + 20ms);
  heap.add("b", kStart + 10ms);
  heap.add("a", kStart + 5ms);
  heap.add("b", kStart + 50ms);
  EXPECT_EQ(heap.size(), 2u);
  EXPECT_EQ(heap.next(), kStart + 5ms);
  EXPECT_EQ(heap.take(kStart), std::nullopt);
  EXPECT_EQ(heap.take(kStart + 5ms), "a");
  EXPECT_EQ(heap.take(kStart + 5ms), std::nullopt);
  EXPECT_EQ(heap.take(kStart + 10ms), "b");
  EXPECT_EQ(heap.next(), std::nullopt);
  heap.add("c", kStart);
  heap.remove("c");
}

TEST(QueueCoreTest, FairAndStingy) {
  QueueCore core({}, kStart);
  for (const char* key : {"a", "b", "a", "c", "b"}) core.add(key, kStart);
  EXPECT_EQ(core.take(kStart), "a");
  EXPECT_EQ(core.take(kStart), "b");
  EXPECT_EQ(core.take(kStart), "c");
  EXPECT_EQ(core.take(kStart), std::nullopt);
}

TEST(QueueCoreTest, AddedWhileProcessedComesAfterDone) {
  QueueCore core({}, kStart);
  core.add("a", kStart);
  ASSERT_EQ(core.take(kStart), "a");
  core.add("a", kStart);
  core.add("a", kStart);
  EXPECT_EQ(core.take(kStart), std::nullopt) << "one worker per key";
  core.done("a");
  EXPECT_EQ(core.take(kStart), "a");
  core.done("a");
  EXPECT_EQ(core.take(kStart), std::nullopt);
}

TEST(QueueCoreTest, DelaysAndBackOff) {
  QueueCore core({{5ms, 1s}, 1000, 100}, kStart);
  core.add_at("late", kStart + 1s, kStart);
  core.add_rate_limited("bad", kStart);
  EXPECT_EQ(core.next_due(), kStart + 5ms);
  EXPECT_EQ(core.take(kStart + 4ms), std::nullopt);
  EXPECT_EQ(core.take(kStart + 5ms), "bad");
  core.add_rate_limited("bad", kStart + 5ms);
  core.done("bad");
  EXPECT_EQ(core.take(kStart + 14ms), std::nullopt);
  EXPECT_EQ(core.take(kStart + 15ms), "bad");
  EXPECT_EQ(core.failures("bad"), 2);
  core.forget("bad");
  core.done("bad");
  EXPECT_EQ(core.take(kStart + 1s), "late");
}

TEST(QueueCoreTest, RequestedDelayIsTheLeastBackOff) {
  QueueCore core({{5ms, 1s}, 1000, 100}, kStart);
  core.add_rate_limited("a", kStart, 300ms);
  EXPECT_EQ(core.next_due(), kStart + 300ms);
  EXPECT_EQ(core.take(kStart + 300ms), "a");
  core.done("a");
  for (int i = 0; i < 8; ++i) {
    core.add_rate_limited("a", kStart + 300ms, 20ms);
    EXPECT_EQ(core.take(kStart + 2s), "a");
    core.done("a");
  }
  core.add_rate_limited("a", kStart + 2s, 20ms);
  EXPECT_EQ(core.next_due(), kStart + 3s) << "its own back-off is longer";
}

TEST(QueueCoreTest, ManyThatAreAskedToStayAwayDoNotComeBackAtOnce) {
  QueueCore core({{5ms, 1s}, 10, 100}, kStart);
  for (int i = 0; i < 1000; ++i) core.add_rate_limited(std::to_string(i), kStart, 60s);
  int came = 0;
  while (core.take(kStart + 60s)) ++came;
  EXPECT_EQ(came, 100) << "no more than the burst";
  while (core.take(kStart + 70s)) ++came;
  EXPECT_EQ(came, 200);
}

// Against a dumb model: no key is lost, none is with two workers, and the stated invariant holds after every
// step.
TEST(QueueCoreTest, RandomOperationsKeepTheInvariant) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 0);
    QueueCore core({{1ms, 8ms}, 1e6, 1000}, kStart);
    TimePoint now = kStart;
    std::set<std::string> owed, working;  // owed: asked for since last taken
    for (int i = 0; i < 400; ++i) {
      const std::string key(1, static_cast<char>('a' + rng.below(6)));
      switch (rng.below(6)) {
        case 0:
          core.add(key, now), owed.insert(key);
          break;
        case 1:
          core.add_at(key, now + Duration(1ms) * rng.below(5), now), owed.insert(key);
          break;
        case 2:
          core.add_rate_limited(key, now), owed.insert(key);
          break;
        case 3:
          now += Duration(1ms) * rng.below(4);
          break;
        case 4:
          if (const auto taken = core.take(now)) {
            owed.erase(*taken);
            EXPECT_TRUE(working.insert(*taken).second) << *taken << " has two workers";
          }
          break;
        default:
          if (!working.empty()) core.done(*working.begin()), working.erase(working.begin());
      }
      ASSERT_TRUE(core.invariant_holds());
    }
    for (const std::string& key : working) core.done(key);
    std::set<std::string> rest;
    while (const auto taken = core.take(now + 1h)) {
      rest.insert(*taken);
      core.done(*taken);
    }
    for (const std::string& key : owed) EXPECT_TRUE(rest.contains(key)) << key << " is lost";
    EXPECT_EQ(core.take(now + 2h), std::nullopt);
  }
}

}  // namespace
}  // namespace paceline::queue
