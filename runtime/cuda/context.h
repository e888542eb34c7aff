#pragma once

// One GPU as this process uses it: the device's primary context (which NCCL and cuBLASLt use, too).
// Everything that is made in a context holds it; it is released when the last of them is gone.
//
// Thread-safe. CUDA's calls work on the context that is current on the calling thread: enter() makes it so,
// and is called by everything here that makes or frees something. Who launches and copies on a thread of its
// own calls it there first, once.
//
// An error of a kernel or a copy comes from a later call of the same context, and stays: INTERNAL, or
// UNAVAILABLE where the device is lost (see Driver::check). The context can't be used any more then.

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver.h"

namespace paceline::cuda {

class Context {
 public:
  // `ordinal` as in list_devices. INVALID_ARGUMENT where there is no such device.
  static absl::StatusOr<std::shared_ptr<const Context>> open(std::shared_ptr<const Driver> driver,
                                                             int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  absl::Status enter() const;

  const Driver::Calls& calls() const { return driver_->calls(); }
  absl::Status check(CUresult result, const char* call) const { return driver_->check(result, call); }
  const DeviceFacts& device() const { return facts_; }

  struct MemoryInfo {
    std::size_t free_bytes = 0, total_bytes = 0;
  };
  absl::StatusOr<MemoryInfo> memory() const;

 private:
  Context(std::shared_ptr<const Driver> driver, DeviceFacts facts, CUdevice device)
      : driver_(std::move(driver)), facts_(std::move(facts)), device_(device) {}

  std::shared_ptr<const Driver> driver_;
  DeviceFacts facts_;
  CUdevice device_;
  CUcontext handle_ = nullptr;
};

}  // namespace paceline::cuda
