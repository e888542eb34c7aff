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

}  // namespace
}  // namespace paceline
