#pragma once

// DeviceState on an NVIDIA GPU, by the kernels of runtime/cuda/optimizer.h: the norm's sum is in the GPU's
// order, and so is not the processor's to the last bit. Steps write the bf16 copy of the weights that the
// queue's programs read (tensor/gpu/half_weights.h) in the same pass.
//
// A step is one launch, and three and a copy of the norm where it clips. They are no CUDA graph, since the
// learning rate changes from step to step.

#include <memory>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/optimizer/device_state.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/program.h"

namespace paceline::optimizer {

// `device` is of open_gpu_device() and outlives it, `queue` of that device. Weights and state are zeros at
// first. RESOURCE_EXHAUSTED; the device's errors. REQUIRES: Optimizer::create() takes `spec`.
absl::StatusOr<std::unique_ptr<DeviceState>> make_gpu_state(tensor::Device& device,
                                                            std::shared_ptr<tensor::Queue> queue,
                                                            const v1::OptimizerSpec& spec,
                                                            const tensor::ParameterLayout& layout);

}  // namespace paceline::optimizer
