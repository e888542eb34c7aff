#include "runtime/cuda/polling.h"

#include <sys/prctl.h>

#include <chrono>
#include <thread>

namespace paceline::cuda {

namespace {
constexpr std::chrono::microseconds kPause{20};
constexpr unsigned long kSlackNanoseconds = 1000;
}  // namespace

void pause_after(int asked) {
  if (asked < kEagerQuestions) return;
  thread_local const int set = prctl(PR_SET_TIMERSLACK, kSlackNanoseconds);
  static_cast<void>(set);  // where it fails, pauses are longer
  std::this_thread::sleep_for(kPause);
}

}  // namespace paceline::cuda
