#pragma once

// How a communicator ends: the first reason stays. Thread-safe.

#include <atomic>

#include "absl/status/status.h"
#include "base/guarded.h"

namespace paceline::collective {

inline constexpr char kRetired[] = "its view has ended";

class Closing {
 public:
  // True when this call was the first.
  bool close(absl::Status reason) {
    if (reason.ok()) reason = absl::AbortedError("the communicator was closed");
    auto locked = reason_.lock();
    if (!locked->ok()) return false;
    *locked = std::move(reason);
    // Under the lock: whoever lost to this call reads the reason.
    closed_.store(true, std::memory_order_release);
    return true;
  }
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }
  absl::Status reason() const { return is_closed() ? *reason_.lock() : absl::OkStatus(); }

 private:
  std::atomic<bool> closed_{false};
  mutable Guarded<absl::Status> reason_;
};

}  // namespace paceline::collective
