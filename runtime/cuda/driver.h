#pragma once

// NVIDIA's driver (libcuda.so.1) by its C interface, opened at run time: names, arguments and errors are
// those of the CUDA driver API. All of CUDA that Paceline uses goes through this table, so that a build needs
// no CUDA library, and one binary runs on machines without a GPU.

#include <cuda.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace paceline::cuda {

// The driver must know CUDA 13.0, for which the kernels are compiled: NVIDIA's driver 580 or newer.
inline constexpr int kLeastCudaVersion = 13000;

// clang-format off
#define PACELINE_CUDA_DRIVER_CALLS(X)                                                                 \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString)                               \
  X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem)   \
  X(cuDeviceGetUuid) X(cuDeviceGetPCIBusId)                                                           \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent)                         \
  X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuFuncGetParamInfo)                  \
  X(cuFuncSetAttribute) X(cuLaunchKernel)                                                             \
  X(cuMemAlloc) X(cuMemFree) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemGetInfo)                       \
  X(cuMemHostRegister) X(cuMemHostUnregister)                                                         \
  X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuMemsetD8Async)                   \
  X(cuStreamBeginCapture) X(cuStreamEndCapture)                                                       \
  X(cuGraphInstantiate) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy)                      \
  X(cuCtxGetStreamPriorityRange) X(cuStreamCreate) X(cuStreamCreateWithPriority)                      \
  X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent)                     \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuEventElapsedTime)
// clang-format on

class Driver {
 public:
  // Opens libcuda.so.1 (or `path`) and calls cuInit. Errors:
  //   NOT_FOUND            there is no driver, or no GPU that it may use
  //   FAILED_PRECONDITION  the driver is older than kLeastCudaVersion; the message says what is needed
  //   UNAVAILABLE          the driver is there and does not start (its module and its library differ, ...)
  static absl::StatusOr<std::shared_ptr<const Driver>> open(const std::string& path = "");

  // OK, or an error that names the call, CUDA's own name of the error and its words. RESOURCE_EXHAUSTED: no
  // device memory; UNAVAILABLE: the device is lost; INTERNAL: all else.
  absl::Status check(CUresult result, const char* call) const;

  int cuda_version() const { return cuda_version_; }  // 13000: 13.0

#define PACELINE_CUDA_MEMBER(call) decltype(&::call) call = nullptr;
  struct Calls {
    PACELINE_CUDA_DRIVER_CALLS(PACELINE_CUDA_MEMBER)
  };
#undef PACELINE_CUDA_MEMBER
  const Calls& calls() const {
    return calls_;
  }

 private:
  Driver() = default;

  Calls calls_;
  int cuda_version_ = 0;
};

// Of a GPU, as its driver tells it.
struct DeviceFacts {
  int ordinal = 0;
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-...", as in NVIDIA_VISIBLE_DEVICES; of a MIG instance its own, so written, too
  std::string pci_bus_id;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
};
absl::StatusOr<std::vector<DeviceFacts>> list_devices(const Driver& driver);

}  // namespace paceline::cuda
