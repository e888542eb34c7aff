#pragma once

// What a replica trains, where a device has memory of its own: weights, their gradient and the optimizer's
// state stay there from step to step, and the optimizer's steps are the device's. The host has copies of
// weights and state only when it asks for them.
//
// Vectors are flat fp32, laid out as the weights (tensor/program.h). Work is added to queue() and returns at
// once, but for where it is said that the host waits; that ends by the queue's own limit. One thread.
// Errors: the device's (tensor/device.h).

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/program.h"

namespace paceline::optimizer {

// Of the host; they outlive the state that is moved to or from them.
struct HostVectors {
  std::span<float> weights;
  std::vector<StateVector> state;  // Optimizer::state()
};

class DeviceState {
 public:
  virtual ~DeviceState() = default;

  // For programs that are bound to vectors(), and nobody else on another thread.
  virtual tensor::Queue& queue() = 0;
  virtual tensor::DeviceVectors vectors() const = 0;
  // Another of the same device: for copies that go beside that work.
  virtual absl::StatusOr<std::unique_ptr<tensor::Queue>> open_queue() = 0;

  // Weights and the optimizer's vectors, in the order of HostVectors: for another member's state to be
  // written there. When it is there, taken() says after how many steps that is. REQUIRES: no work is under
  // way.
  virtual std::vector<float*> state_vectors() = 0;
  virtual void taken(std::int64_t steps) = 0;

  // As after `steps` steps. Waits until all of it is there.
  virtual absl::Status upload(const HostVectors& from, std::int64_t steps) = 0;
  // Gives the host what the steps so far have made, while later work goes on: the next step waits for it, on
  // the device. `to` is whole when finish_download() has returned OK. REQUIRES: no other one is under way.
  virtual absl::Status begin_download(const HostVectors& to) = 0;
  virtual absl::Status finish_download() = 0;

  // One step as Optimizer::step() has it, with the gradient as the work before leaves it: the same bits from
  // the same gradient and norm, where the processor has fused multiply-add. Whether the gradient's norm was
  // finite is known later: INVALID_ARGUMENT is of the step before, which changed nothing.
  virtual absl::Status update(double learning_rate) = 0;
  // Waits for the last step, and tells what is known of it then.
  virtual absl::Status check() = 0;
  virtual std::int64_t steps() const = 0;
  // base/vector_hash.h of the weights. Waits.
  virtual absl::StatusOr<std::uint64_t> hash() = 0;

  virtual std::size_t bytes() const = 0;  // of the device's memory
  // See tensor::Device::pin().
  virtual std::shared_ptr<const void> pin(std::span<std::byte> memory) = 0;
};

}  // namespace paceline::optimizer
