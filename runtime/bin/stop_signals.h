#pragma once

// SIGTERM and SIGINT as a StopRequest. The signals are blocked in this thread and in all that it starts
// later, and taken by a thread of its own: make it before any other thread. One at a time in a process.

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "runtime/trainer/stop_request.h"

namespace paceline {

struct StopPatience {
  Duration others = std::chrono::seconds(2);  // with the other members, and then with the training thread
  // With a save in which nothing moves. The controller's Limits::save_grace is longer.
  Duration save = std::chrono::minutes(5);
  std::function<void()> end_process;  // null: _exit(kExitEnded)
};

class StopSignals {
 public:
  // At the first signal the request is made; `others` later, or at a second signal, it expires; and as long
  // after that, or at a third signal, the process ends with kExitEnded. While a checkpoint or the model is
  // being written that time stands still, but when nothing of it has moved for `save` it ends, too. Request
  // and logger outlive it. UNAVAILABLE: the system refuses.
  static absl::StatusOr<std::unique_ptr<StopSignals>> watch(trainer::StopRequest& request,
                                                            const Logger& logger, StopPatience patience = {});
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  StopSignals(trainer::StopRequest& request, const Logger& logger, StopPatience patience, UniqueFd signals,
              UniqueFd done);
  void run();
  // True when a signal came, false when `timeout` passed; `ended_` is set when this object goes.
  bool wait_signal(Duration timeout);
  // Until the training thread has ended by itself (`ended_`), or has had its time.
  void wait_for_end();

  trainer::StopRequest& request_;
  const Logger& logger_;
  const StopPatience patience_;
  UniqueFd signals_, done_;
  bool ended_ = false;  // the thread's
  std::jthread thread_;
};

}  // namespace paceline
