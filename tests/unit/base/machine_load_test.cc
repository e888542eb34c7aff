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

TEST(MachineLoadTest, FreeAddressSpaceIsTheLimitWithoutWhatIsMapped) {
  EXPECT_EQ(free_address_space(10000, "2 1 1 1 0 1 0\n", 4096), 10000u - 8192u);
  EXPECT_EQ(free_address_space(8000, "2 1 1 1 0 1 0\n", 4096), 0u) << "the limit came later";
  EXPECT_EQ(free_address_space(8000, "", 4096), std::nullopt);
}

}  // namespace
}  // namespace paceline
