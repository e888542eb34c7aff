#pragma once

// The workload of a real job: its files or its program's own data set, its model, compiled for a device.

#include <memory>

#include "runtime/tensor/device.h"
#include "runtime/trainer/registry.h"
#include "runtime/trainer/workload.h"

namespace paceline::trainer {

// Errors: those of open_datasets(), make_model() and compile(); INVALID_ARGUMENT where training and held-out
// samples have different shapes.
// `threads` open the files.
OpenWorkload make_open_workload(Registry registry, std::shared_ptr<tensor::Device> device, int threads);

}  // namespace paceline::trainer
