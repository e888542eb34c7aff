#include "base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace paceline {
namespace {

TEST(Processors, ObeysTheAffinityMask) {
  EXPECT_GE(usable_processors(), 1);
  std::jthread([] {  // its own mask, so that the test's stays
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_processors(), 1);
  })
      .join();
}

}  // namespace
}  // namespace paceline
