#include "base/guarded.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace paceline {
namespace {

using namespace std::chrono_literals;

TEST(GuardedTest, ManyThreadsCountRight) {
  Guarded<int> count(0);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) ++*count.lock();
      });
    }
  }
  EXPECT_EQ(*count.lock(), 4000);
}

TEST(GuardedTest, LockWhenWaitsForTheCondition) {
  Guarded<int> value(0);
  std::jthread setter([&] { *value.lock() = 3; });
  bool held = false;
  EXPECT_EQ(*value.lock_when([](int v) { return v == 3; }, 10s, &held), 3);
  EXPECT_TRUE(held);
}

TEST(GuardedTest, EveryWaiterSeesItsCondition) {
  Guarded<int> value(0);
  std::vector<std::jthread> waiters;
  for (int w = 1; w <= 3; ++w) {
    waiters.emplace_back([&value, w] {
      bool held = false;
      value.lock_when([w](int v) { return v >= w; }, Duration::max(), &held);
      EXPECT_TRUE(held);
    });
  }
  for (int i = 0; i < 3; ++i) ++*value.lock();
}

TEST(GuardedTest, LockWhenGivesUp) {
  Guarded<int> value(0);
  bool held = true;
  EXPECT_EQ(*value.lock_when([](int v) { return v == 3; }, 1ms, &held), 0);
  EXPECT_FALSE(held);
}

}  // namespace
}  // namespace paceline
