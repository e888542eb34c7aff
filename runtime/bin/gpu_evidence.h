#pragma once

// How this member's GPU is, for its heartbeats: asked about once a second by a thread of its own, since an
// answer takes milliseconds and heartbeats wait for nobody.

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/cuda/gpu_monitor.h"

namespace paceline {

class GpuEvidence {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(1);

  // Of the GPU called `name` whose monitor this is; a first reading is taken at once. That a GPU can't be
  // read is logged once, until it can again; its name and its Xids are told all the same.
  GpuEvidence(std::string name, std::unique_ptr<cuda::GpuMonitor> monitor, Logger logger,
              Duration every = kEvery);
  ~GpuEvidence();

  // Puts the newest reading into a heartbeat. Any thread.
  void add_to(v1::Heartbeat& heartbeat);

 private:
  struct State {
    bool stopped = false;
    GpuTelemetry newest;
  };
  void watch();
  void look();

  const std::string name_;
  const std::unique_ptr<cuda::GpuMonitor> monitor_;
  const Logger logger_;
  const Duration every_;
  bool troubled_ = false;  // the constructor's, then the thread's
  Guarded<State> state_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace paceline
