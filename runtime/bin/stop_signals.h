#pragma once

// SIGTERM and SIGINT as a StopRequest. The signals are blocked in this thread and in all that it starts
// later, and taken by a thread of its own: make it before any other thread. One at a time in a process.

#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "runtime/trainer/stop_request.h"

namespace paceline {

class StopSignals {
 public:
  // At the first signal the request is made; two seconds later, or at a second signal, it expires; and two
  // seconds after that the process ends with kExitEnded. Both outlive it. UNAVAILABLE: the system refuses.
  static absl::StatusOr<std::unique_ptr<StopSignals>> watch(trainer::StopRequest& request,
                                                            const Logger& logger);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  StopSignals(trainer::StopRequest& request, const Logger& logger, UniqueFd signals, UniqueFd done);
  void run();
  // True when a signal came, false when `timeout_ms` passed; `ended_` is set when this object goes.
  bool wait_signal(int timeout_ms);

  trainer::StopRequest& request_;
  const Logger& logger_;
  UniqueFd signals_, done_;
  bool ended_ = false;  // the thread's
  std::jthread thread_;
};

}  // namespace paceline
