#pragma once

// The CPU as a device: matrix products and convolutions by oneDNN, the rest by our kernels.

#include <memory>

#include "runtime/tensor/device.h"

namespace paceline::tensor {

struct CpuOptions {
  int threads = 1;  // of one program; each program is run by one thread of its owner
};

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options);

}  // namespace paceline::tensor
