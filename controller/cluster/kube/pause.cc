#include "controller/cluster/kube/pause.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace paceline::kube {

bool real_pause(Duration time, std::stop_token stop) {
  constexpr Duration kLongest = std::chrono::hours(24);
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::min(time, kLongest), [] { return false; });
  return !stop.stop_requested();
}

}  // namespace paceline::kube
