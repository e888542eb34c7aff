#include "runtime/device/choose_device.h"

#include <utility>

#include "base/cuda_build.h"
#include "base/status.h"
#include "runtime/tensor/cpu/cpu_device.h"

#if defined(PACELINE_WITH_CUDA)
#include "runtime/cuda/driver.h"
#include "runtime/tensor/gpu/gpu_device.h"
#endif

namespace paceline::device {

namespace {

ChosenDevice processors(int threads) {
  ChosenDevice chosen;
  chosen.device = tensor::make_cpu_device({threads});
  chosen.words = str_cat("on processors with ", threads, threads == 1 ? " thread" : " threads");
  return chosen;
}

#if defined(PACELINE_WITH_CUDA)

absl::StatusOr<ChosenDevice> open_gpu(const DeviceChoice& choice, int slot, const GpuUse& use) {
  PL_ASSIGN_OR_RETURN(const auto driver, cuda::Driver::open());
  PL_ASSIGN_OR_RETURN(const auto gpus, cuda::list_devices(*driver));
  const int count = static_cast<int>(gpus.size());
  if (count == 0) return absl::NotFoundError("this process sees no GPU");
  const int ordinal = choice.ordinal.value_or(slot % count);
  if (ordinal >= count) {
    return absl::NotFoundError(str_cat("GPU ", ordinal, " is asked for, and this process sees ", count,
                                       count == 1 ? " GPU" : " GPUs", ", numbered from 0"));
  }
  const cuda::DeviceFacts& facts = gpus[static_cast<std::size_t>(ordinal)];
  ChosenDevice chosen;
  auto device = tensor::open_gpu_device(
      {.ordinal = ordinal, .graphs = use.graphs, .no_graphs = use.no_graphs, .not_pinned = use.not_pinned});
  // The GPU is there: what it needs is not.
  if (absl::IsNotFound(device.status())) return absl::FailedPreconditionError(device.status().message());
  PL_ASSIGN_OR_RETURN(chosen.device, std::move(device));
  chosen.words = str_cat("on GPU ", ordinal, " of ", count, ": ", facts.name, ", ", facts.memory_bytes >> 20,
                         " MiB, ", facts.pci_bus_id, ", ", facts.uuid);
  chosen.gpu = facts.name;
  chosen.gpu_uuid = facts.uuid;
  chosen.gpu_index = ordinal;
  return chosen;
}

#else

absl::StatusOr<ChosenDevice> open_gpu(const DeviceChoice&, int, const GpuUse&) {
  return without_cuda(has_nvidia_gpu());
}

#endif

}  // namespace

absl::StatusOr<ChosenDevice> choose_device(const DeviceChoice& choice, int slot, int threads,
                                           const GpuUse& use) {
  if (choice.kind == DeviceChoice::Kind::kCpu) return processors(threads);
  auto gpu = open_gpu(choice, slot, use);
  if (gpu.ok()) return gpu;
  const std::string why(gpu.status().message());
  if (choice.kind == DeviceChoice::Kind::kCuda) {
    return absl::InvalidArgumentError(
        str_cat("PACELINE_DEVICE asks for a GPU: ", why, "; mend that, or set PACELINE_DEVICE=cpu"));
  }
  ChosenDevice chosen = processors(threads);
  if (absl::IsNotFound(gpu.status())) {
    chosen.no_gpu = why;
  } else {
    chosen.warning = str_cat("there is a GPU that can't be used: ", why);
  }
  return chosen;
}

}  // namespace paceline::device
