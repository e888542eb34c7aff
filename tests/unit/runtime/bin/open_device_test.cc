#include "runtime/bin/open_device.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(EndStuck, EndsTheProcessAndSaysWhy) {
  EXPECT_EXIT(
      end_stuck(Logger::to_stderr("chief-0", LogLevel::kInfo), "cuLaunchKernel has not returned"),
      ::testing::ExitedWithCode(134),
      "error +chief-0: cuLaunchKernel has not returned: this process ends, and leaves its place to another");
}

}  // namespace
}  // namespace paceline
