#include "cli/state/owner_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/stopped_child.h"

namespace paceline::cli {
namespace {

TEST(OwnerProcess, StateIsRead) {
  EXPECT_TRUE(is_alive(::getpid()));
  EXPECT_FALSE(stands_still(::getpid()));
  EXPECT_FALSE(is_alive(0));
  StoppedChild child;
  EXPECT_TRUE(is_alive(child.pid()));
  EXPECT_TRUE(stands_still(child.pid()));
  child.kill();
  EXPECT_FALSE(is_alive(child.pid())) << "it has ended, and nobody has waited for it";
}

}  // namespace
}  // namespace paceline::cli
