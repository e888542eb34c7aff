#pragma once

// The workload of a real job: its files or its program's own data set, its model, compiled for a device.

#include <memory>

#include "runtime/tensor/device.h"
#include "runtime/trainer/registry.h"
#include "runtime/trainer/workload.h"

namespace paceline::trainer {

// Where programs run; where that has memory of its own, what makes a replica's state there (else null), and
// where it is told how long the device is at a step; and what the workload has of the same names.
struct Compute {
  std::shared_ptr<tensor::Device> device;
  std::function<absl::StatusOr<std::unique_ptr<optimizer::DeviceState>>(
      tensor::Device& device, std::shared_ptr<tensor::Queue> queue, const v1::OptimizerSpec& spec,
      const tensor::ParameterLayout& layout)>
      make_state = nullptr;
  std::shared_ptr<tensor::DeviceTimer::Sums> times = nullptr;
  exchange::OpenDeviceExchange open_exchange = nullptr;
  std::function<void()> let_exchange_go = nullptr;  // what that keeps for the next view; may be null
  std::string why_no_exchange = {};
  std::string device_id = {};  // of a device that has memory of its own, and may be shared
};

// A member has this part of its machine.
struct Host {
  int threads = 1;            // that open the files and compute
  bool trains = true;         // false: it reads the weights alone, as an evaluator does
  int free_mib_at_begin = 0;  // before the first member of the job took any; 0: not known
  int members = 1;            // that train on this machine, this one included
};

// Errors: those of open_datasets(), make_model() and compile(), the device's; INVALID_ARGUMENT where training
// and held-out samples have different shapes; RESOURCE_EXHAUSTED where the device has no room for the
// model's weights alone, or this machine none for what the member keeps (memory_budget.h).
OpenWorkload make_open_workload(Registry registry, Compute compute, const Host& host);

}  // namespace paceline::trainer
