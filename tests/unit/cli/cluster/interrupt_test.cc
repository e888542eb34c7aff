#include "cli/cluster/interrupt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/no_descriptors.h"

namespace paceline::cli {
namespace {

using ::testing::HasSubstr;

bool is_blocked(int signal) {
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

TEST(Interrupt, WithoutDescriptorsCtrlCIsAsBefore) {
  absl::Status opened, taken;
  {
    const NoDescriptors none;
    opened = Interrupt::open(130).status();
    taken = take_signals({SIGINT, SIGTERM}).status();
  }
  for (const absl::Status& status : {opened, taken}) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("a file descriptor for ctrl-C: Too many open files"));
  }
  EXPECT_FALSE(is_blocked(SIGINT));
  EXPECT_FALSE(is_blocked(SIGTERM));
}

}  // namespace
}  // namespace paceline::cli
