#include "controller/reconcile/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace paceline::reconcile {
namespace {

TEST(ParallelTest, EachPieceIsDoneOnce) {
  for (const int threads : {0, 1, 4}) {
    Parallel parallel(threads);
    for (const std::size_t count : {0U, 1U, 2U, 100U}) {
      std::mutex mutex;
      std::multiset<std::size_t> done;
      parallel.run(count, [&](std::size_t i) {
        const std::lock_guard lock(mutex);
        done.insert(i);
      });
      ASSERT_EQ(done.size(), count);
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(done.count(i), 1u);
    }
  }
}

TEST(ParallelTest, PiecesRunAtTheSameTime) {
  Parallel parallel(3);
  std::barrier all(4);  // passes only when three threads and the caller are in it
  parallel.run(4, [&](std::size_t) { all.arrive_and_wait(); });
}

TEST(ParallelTest, CallersShareTheThreads) {
  Parallel parallel(2);
  std::atomic<int> done{0};
  {
    std::vector<std::jthread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&] {
        for (int k = 0; k < 50; ++k) parallel.run(5, [&](std::size_t) { ++done; });
      });
    }
  }
  EXPECT_EQ(done.load(), 4 * 50 * 5);
}

TEST(SlowStartTest, BatchesDoubleUntilOneFails) {
  Parallel parallel(0);  // in order
  struct {
    std::size_t count, largest, bad, called;
  } cases[] = {
      {0, 64, 99, 0},  {1, 64, 99, 1},  {100, 64, 999, 100}, {100, 64, 0, 1}, {100, 64, 1, 3},
      {100, 64, 2, 3}, {100, 64, 3, 7}, {100, 2, 3, 5},      {2, 64, 1, 2},
  };
  for (const auto& c : cases) {
    std::vector<std::size_t> seen;
    const std::size_t called = slow_start(parallel, c.count, c.largest, [&](std::size_t i) {
      seen.push_back(i);
      return i != c.bad;
    });
    EXPECT_EQ(called, c.called) << c.count << " " << c.bad;
    EXPECT_EQ(seen.size(), c.called);
  }
}

}  // namespace
}  // namespace paceline::reconcile
