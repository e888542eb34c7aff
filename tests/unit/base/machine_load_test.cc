#include "base/machine_load.h"

#include <gtest/gtest.h>

#include "base/processors.h"

namespace paceline {
namespace {

TEST(MachineLoadTest, IsOfTheWholeMachine) {
  const auto load = machine_load();
  ASSERT_TRUE(load.has_value());
  EXPECT_GE(load->threads, 0);
  EXPECT_GE(load->processors, usable_processors());
}

}  // namespace
}  // namespace paceline
