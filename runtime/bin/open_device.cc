#include "runtime/bin/open_device.h"

#include "base/status.h"
#include "runtime/tensor/cpu/cpu_device.h"

#if defined(PACELINE_WITH_CUDA)
#include "runtime/cuda/driver.h"
#include "runtime/optimizer/gpu/gpu_state.h"
#include "runtime/tensor/gpu/gpu_device.h"
#endif

namespace paceline {

namespace {

using member::DeviceChoice;

OpenedDevice processors(const member::Environment& environment, int threads, const Logger& logger,
                        const std::string& why) {
  logger.info(str_cat("computes for ", environment.job, " with ", threads,
                      threads == 1 ? " thread" : " threads", why.empty() ? "" : ": ", why));
  return {{tensor::make_cpu_device({threads})}, "", ""};
}

#if defined(PACELINE_WITH_CUDA)

absl::StatusOr<OpenedDevice> open_gpu(const member::Environment& environment, const Logger& logger) {
  PL_ASSIGN_OR_RETURN(const auto driver, cuda::Driver::open());
  PL_ASSIGN_OR_RETURN(const auto gpus, cuda::list_devices(*driver));
  const int count = static_cast<int>(gpus.size());
  if (count == 0) return absl::NotFoundError("this process sees no GPU");
  const int ordinal = environment.device.ordinal.value_or(environment.index % count);
  if (ordinal >= count) {
    return absl::NotFoundError(str_cat("GPU ", ordinal, " is asked for, and this process sees ", count,
                                       count == 1 ? " GPU" : " GPUs", ", numbered from 0"));
  }
  PL_ASSIGN_OR_RETURN(auto device, tensor::open_gpu_device({.ordinal = ordinal}));
  const cuda::DeviceFacts& facts = gpus[static_cast<std::size_t>(ordinal)];
  logger.info(str_cat("computes for ", environment.job, " on GPU ", ordinal, " of ", count, ": ", facts.name,
                      ", ", facts.memory_bytes >> 20, " MiB, ", facts.pci_bus_id, ", ", facts.uuid));
  return OpenedDevice{{std::move(device), optimizer::make_gpu_state}, facts.name, facts.uuid};
}

#else

absl::StatusOr<OpenedDevice> open_gpu(const member::Environment&, const Logger&) {
  return absl::NotFoundError("this program was built without CUDA");
}

#endif

}  // namespace

absl::StatusOr<OpenedDevice> open_device(const member::Environment& environment, int threads,
                                         const Logger& logger) {
  const DeviceChoice::Kind kind = environment.device.kind;
  if (kind == DeviceChoice::Kind::kCpu) return processors(environment, threads, logger, "");
  auto gpu = open_gpu(environment, logger);
  if (gpu.ok()) return gpu;
  const std::string why(gpu.status().message());
  if (kind == DeviceChoice::Kind::kCuda) {
    return absl::InvalidArgumentError(
        str_cat("PACELINE_DEVICE asks for a GPU: ", why, "; mend that, or set PACELINE_DEVICE=cpu"));
  }
  if (!absl::IsNotFound(gpu.status())) logger.warning(str_cat("there is a GPU that can't be used: ", why));
  return processors(environment, threads, logger,
                    absl::IsNotFound(gpu.status()) ? str_cat("no GPU: ", why) : "");
}

}  // namespace paceline
