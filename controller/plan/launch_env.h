#pragma once

// What the launchers of PyTorch and TensorFlow read, for jobs whose templates' own commands run (no
// spec.training): TF_CONFIG, MASTER_ADDR and MASTER_PORT, RANK, WORLD_SIZE, LOCAL_RANK, PET_*
// (docs/kubernetes.md). Pure.

#include <map>
#include <string>

#include "controller/plan/pods.h"

namespace paceline::plan {

inline constexpr int kMasterPort = 29500;     // torchrun's own default
inline constexpr int kTensorFlowPort = 2222;  // as in Kubeflow's TFJob

// One process a pod; rank 0 is the chief, or worker 0. The ring's members alone have ranks: of the others
// only TF_CONFIG tells. `first_port`: Limits::first_port.
std::map<std::string, std::string> launch_env(const api::TrainingJob& job, const Slot& slot,
                                              int first_port = 0);

}  // namespace paceline::plan
