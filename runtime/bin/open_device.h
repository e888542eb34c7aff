#pragma once

// Where this member computes: the GPU that it was given, or the processors.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "runtime/member/environment.h"
#include "runtime/trainer/open_workload.h"

namespace paceline {

// As environment.device says. kAuto: a GPU where there is one that can be used, else the processors; the log
// says which, and warns of a GPU that can't be (driver too old, no cuBLASLt). Several members on a machine
// share its GPUs: member `index` takes GPU index modulo their number (a pod sees only those that it was
// given).
// INVALID_ARGUMENT: kCuda, and the GPU that is asked for is not there, or can't be used.
struct OpenedDevice {
  trainer::Compute compute;
  std::string gpu, gpu_uuid;  // its name and uuid (runtime/cuda/driver.h); empty: the processors
};
absl::StatusOr<OpenedDevice> open_device(const member::Environment& environment, int threads,
                                         const Logger& logger);

}  // namespace paceline
