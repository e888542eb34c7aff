#pragma once

// Whether this program can compute on NVIDIA GPUs at all (PACELINE_CUDA), and what to say where it can't.

#include <string>

#include "absl/status/status.h"

namespace paceline {

bool built_with_cuda();

// Whether this process has an NVIDIA GPU: the driver's device file of one, nvidia0 to nvidia63 in `devices`.
// A container has those of the GPUs that it was given, whatever its machine has.
bool has_nvidia_gpu(const std::string& devices = "/dev");

// Why a program that is built without CUDA computes on processors. NOT_FOUND where there is no GPU anyway;
// FAILED_PRECONDITION where one lies idle: the message says how to get a program that takes it.
absl::Status without_cuda(bool gpu_is_there);

}  // namespace paceline
