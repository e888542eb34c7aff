#include "base/process_end.h"

#include <gtest/gtest.h>

#include <csignal>

namespace paceline {
namespace {

TEST(ProcessEndTest, ASignalIsNamedAndOutranksACode) {
  EXPECT_EQ(exit_text({}, SIGKILL), "killed by signal 9 (SIGKILL)");
  EXPECT_EQ(exit_text(1, SIGSEGV), "killed by signal 11 (SIGSEGV)");
  EXPECT_EQ(exit_text({}, 63), "killed by signal 63") << "it has no name";
  EXPECT_EQ(exit_text(2, {}), "exited with code 2");
  EXPECT_EQ(exit_text({}, {}), "");
}

}  // namespace
}  // namespace paceline
