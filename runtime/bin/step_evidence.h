#pragma once

// How long this member's device is at a step (tensor/device_timer.h), for its heartbeats. One thread: theirs.

#include <memory>
#include <string>

#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/tensor/device_timer.h"

namespace paceline {

class StepEvidence {
 public:
  // Of the device called `name`.
  StepEvidence(std::string name, std::shared_ptr<tensor::DeviceTimer::Sums> sums)
      : name_(std::move(name)), sums_(std::move(sums)) {}

  // Adds to a heartbeat's `gpu` its name, and the mean over the steps since it last told of others; before
  // the first step the name alone.
  void add_to(v1::Heartbeat& heartbeat);

 private:
  const std::string name_;
  const std::shared_ptr<tensor::DeviceTimer::Sums> sums_;
  tensor::DeviceTimeSums told_;
  double compute_ms_ = 0, update_ms_ = 0;
};

}  // namespace paceline
