#pragma once

// Ctrl-C (SIGINT, SIGTERM) as a stop token, while it lives. To be opened before other threads are made, which
// inherit that these signals are blocked.
//
// Asked once, what goes on has kGrace to end; then, or when asked again, the process ends with `exit_code`.

#include <initializer_list>
#include <memory>
#include <stop_token>
#include <thread>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace paceline::cli {

// These signals as a descriptor to read signalfd_siginfo from, which never waits; from now on they are
// blocked in this thread and those that it starts. RESOURCE_EXHAUSTED: no more file descriptors; nothing is
// blocked.
absl::StatusOr<UniqueFd> take_signals(std::initializer_list<int> signals);

class Interrupt {
 public:
  static constexpr Duration kGrace = std::chrono::seconds(1);

  // RESOURCE_EXHAUSTED: the system gives no more file descriptors.
  static absl::StatusOr<std::unique_ptr<Interrupt>> open(int exit_code);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  Interrupt(UniqueFd signals, UniqueFd ended, int exit_code);
  void wait(int exit_code);
  std::stop_source source_;
  UniqueFd signals_, ended_;
  std::jthread thread_;  // last: it uses the above
};

}  // namespace paceline::cli
