#pragma once

// Where this member computes: the GPU that it was given, or the processors; and what its trainer has there.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "runtime/member/environment.h"
#include "runtime/trainer/open_workload.h"

namespace paceline {

// As environment.device says (runtime/device/choose_device.h, with its errors); the log says where, and warns
// of a GPU that can't be used. Several members on a machine share its GPUs by their index (a pod sees only
// those that it was given).
struct OpenedDevice {
  trainer::Compute compute;
  std::string gpu, gpu_uuid;  // its name and uuid (runtime/device/choose_device.h); empty: the processors
  int gpu_index = 0;          // of those that this process sees
};
// An NCCL that lets go of nothing ends the process.
absl::StatusOr<OpenedDevice> open_device(const member::Environment& environment, int threads,
                                         const Logger& logger);

// `what` never returns, and keeps what belongs to it: nothing can be ended in order any more. Exit code
// kExitStuck; the log says why.
[[noreturn]] void end_stuck(const Logger& logger, const std::string& what);

}  // namespace paceline
