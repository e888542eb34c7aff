#pragma once

// Where this process computes: a GPU, or the processors. The only place that knows which kinds of devices
// there are.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/device_choice.h"
#include "runtime/tensor/device.h"

namespace paceline::device {

struct ChosenDevice {
  std::shared_ptr<tensor::Device> device;
  std::string words;  // "on GPU 1 of 8: NVIDIA H200, ...", "on processors with 2 threads"
  std::string
      warning;  // of a GPU that can't be used (old driver, no cuBLASLt, no CUDA in this build); else empty
  std::string no_gpu;         // why this process has none, where nobody asked for one; else empty
  std::string gpu, gpu_uuid;  // its name and uuid (runtime/cuda/driver.h); empty: the processors
  int gpu_index = 0;          // of those that this process sees
};

// How a GPU is used, and who hears what it has to do without (tensor/gpu/gpu_device.h).
struct GpuUse {
  bool graphs = true;
  std::function<void(const absl::Status& why)> no_graphs = nullptr;
  std::function<void(const absl::Status& why)> not_pinned = nullptr;
};

// kAuto: a GPU where there is one that can be used, else the processors, of which `threads` are used. A GPU
// that the choice does not name is number `slot` modulo how many this process sees.
// INVALID_ARGUMENT: kCuda, and the GPU that is asked for is not there, or can't be used.
absl::StatusOr<ChosenDevice> choose_device(const DeviceChoice& choice, int slot, int threads,
                                           const GpuUse& use = {});

}  // namespace paceline::device
