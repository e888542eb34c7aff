#pragma once

// Where a job computes, in words: what its environment says beforehand, and what its members have told. Pure.

#include <string>
#include <vector>

#include "base/device_choice.h"
#include "cli/state/run_state.h"
#include "controller/api/types.h"

namespace paceline::cli {

// What a container of the job sets instead of what stands around it.
DeviceVariables device_variables(const api::ReplicaSpec& role, DeviceVariables around);

// How the members of a local run choose, whose variables hold what they may: one line where all roles that
// compute do it alike, else one for each.
std::vector<std::string> device_lines(const api::TrainingJob& job, const DeviceVariables& around,
                                      bool with_cuda);

// For who starts a run: that a GPU of this machine is not computed on, since the program was built without
// CUDA, though some member might; empty where that is not so.
std::string idle_gpu_note(const api::TrainingJob& job, const DeviceVariables& around, bool with_cuda,
                          bool gpu_is_there);

// For who watches a run, once its members are at work on `device` (device_text()): what that is, where it is
// a GPU; a warning where it is processors and this machine has a GPU that some member might have taken; and
// on what it was trained before it was resumed (`before`; empty: not known, on the same, or it was not
// resumed). Empty where there is nothing to say.
std::string computing_note(const api::TrainingJob& job, const DeviceVariables& around,
                           const std::string& device, bool gpu_is_there, const std::string& before);

// The kinds of device that the members compute on which train, in alphabetical order: "NVIDIA H200,
// processors". Empty until each has told.
std::string training_kinds(const std::vector<api::MemberStatus>& members);

// Of the members that have told of a GPU, an evaluator, too, and of those that train and have taken a step:
// "NVIDIA H200", "processors", or with how many are where, "NVIDIA H200 (3 members), processors (1 member)".
// Empty where there is none.
std::string device_text(const std::vector<api::MemberStatus>& members);

}  // namespace paceline::cli
