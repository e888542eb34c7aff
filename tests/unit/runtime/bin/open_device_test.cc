#include "runtime/bin/open_device.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(EndStuck, EndsTheProcessAndSaysWhy) {
  EXPECT_EXIT(end_stuck(Logger::to_stderr("chief-0", LogLevel::kInfo), "NCCL does not let go"),
              ::testing::ExitedWithCode(134),
              "error +chief-0: NCCL does not let go: this process ends, and leaves its place to another");
}

}  // namespace
}  // namespace paceline
