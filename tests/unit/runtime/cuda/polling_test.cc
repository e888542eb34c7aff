#include "runtime/cuda/polling.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <thread>

namespace paceline::cuda {
namespace {

// What a thread's sleeps may be longer, in nanoseconds.
int slack_after(int asked) {
  int slack = 0;
  std::jthread([&] {
    prctl(PR_SET_TIMERSLACK, 50'000UL);
    pause_after(asked);
    slack = prctl(PR_GET_TIMERSLACK);
  }).join();
  return slack;
}

TEST(Polling, PausesAreAsShortAsTheySay) {
  EXPECT_EQ(slack_after(kEagerQuestions - 1), 50'000) << "no pause";
  EXPECT_EQ(slack_after(kEagerQuestions), 1'000);
}

}  // namespace
}  // namespace paceline::cuda
