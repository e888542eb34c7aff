#pragma once

// NVIDIA GPUs: every operator of the CPU's device (cpu_device.h), by the kernels of runtime/cuda and by
// cuBLASLt. Activations and their gradients are fp32, or bf16 with Precision::kBF16; weights, their
// gradients, statistics and losses are fp32 always.
//
// Deterministic: the same bits from run to run on one kind of GPU.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tensor/device.h"

namespace paceline::tensor {

struct GpuOptions {
  int ordinal = 0;       // of the GPUs that this process may see (CUDA_VISIBLE_DEVICES)
  std::string driver;    // path of libcuda; empty: the system's
  std::string cublaslt;  // path of libcublasLt; empty: the system's
  // What queues are given again and again they keep as CUDA graphs (gpu_queue.h).
  bool graphs = true;
  // Hears once of each queue whose driver makes none of them, and why; on the queue's thread. Null: nobody.
  std::function<void(const absl::Status& why)> no_graphs = nullptr;
  // Hears once that memory of the host could not be pinned (Device::pin), and why; on the thread that asked.
  // Null: nobody.
  std::function<void(const absl::Status& why)> not_pinned = nullptr;
};

// NOT_FOUND: no driver, or no GPU; FAILED_PRECONDITION: too old; see Driver::open and CublasLt::open.
absl::StatusOr<std::unique_ptr<Device>> open_gpu_device(const GpuOptions& options);

}  // namespace paceline::tensor
