#include "base/machine_load.h"

#include <gtest/gtest.h>

#include "base/processors.h"

namespace paceline {
namespace {

TEST(MachineLoadTest, IsOfTheWholeMachine) {
  const auto load = machine_load();
  ASSERT_TRUE(load.has_value());
  EXPECT_GE(load->threads, 0);
  EXPECT_EQ(load->usable, usable_processors());
  EXPECT_GE(load->processors, load->usable);
}

TEST(MachineLoadTest, FreeMemoryIsWhatTheKernelReckonsAndSwap) {
  EXPECT_EQ(free_memory("MemTotal: 9 kB\nMemAvailable:    3 kB\nSwapFree: 2 kB\n"), 5u << 10);
  EXPECT_EQ(free_memory("MemAvailable: 3 kB\n"), 3u << 10);
  EXPECT_EQ(free_memory("SwapFree: 2 kB\n"), std::nullopt);
  EXPECT_GT(free_memory().value_or(0), 0u);
}

}  // namespace
}  // namespace paceline
