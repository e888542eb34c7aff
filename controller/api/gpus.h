#pragma once

// Whether a pod template asks for GPUs: NVIDIA's device plug-in gives whole ones, or parts of them, by limits
// of the container. Pure.

#include <string_view>

#include "controller/api/types.h"

namespace paceline::api {

// "nvidia.com/gpu" or "nvidia.com/mig-1g.10gb", and more than none; `amount` as it is written.
bool is_gpu_limit(std::string_view name, std::string_view amount);
// The member's container does.
bool asks_for_gpus(const ReplicaSpec& role);

}  // namespace paceline::api
