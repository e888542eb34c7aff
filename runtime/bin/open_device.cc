#include "runtime/bin/open_device.h"

#include <cstdlib>

#include "base/status.h"
#include "runtime/tensor/cpu/cpu_device.h"

#if defined(PACELINE_WITH_CUDA)
#include "runtime/bin/run_member.h"
#include "runtime/cuda/driver.h"
#include "runtime/nccl/nccl_exchange.h"
#include "runtime/optimizer/gpu/gpu_state.h"
#include "runtime/tensor/gpu/gpu_device.h"
#include "runtime/tensor/gpu/gpu_queue.h"
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

// Gradients from GPU to GPU by NCCL.
void add_nccl(const Logger& logger, trainer::Compute& compute) {
  auto library = nccl::Library::open();
  if (!library.ok()) {
    compute.why_no_exchange = std::string(library.status().message());
    if (!absl::IsNotFound(library.status())) {
      logger.warning(str_cat("there is an NCCL that can't be used: ", compute.why_no_exchange));
    }
    return;
  }
  compute.open_exchange =
      [library = *std::move(library), logger](
          exchange::DeviceExchangeParts parts,
          Deadline deadline) -> absl::StatusOr<std::unique_ptr<exchange::GradientExchange>> {
    auto& queue = static_cast<tensor::gpu::GpuQueue&>(parts.queue);
    PL_ASSIGN_OR_RETURN(
        auto communicator,
        nccl::NcclCommunicator::create(
            {.library = library, .context = queue.context(), .host = std::move(parts.own), .log = logger},
            parts.clock, deadline));
    return nccl::make_nccl_exchange(std::move(parts), queue.stream(), std::move(communicator), [logger] {
      logger.error(
          "NCCL does not let go of its communicator, and the GPU may still be at work for it: this process "
          "ends, and leaves its place to another");
      std::_Exit(kExitStuck);
    });
  };
}

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
  OpenedDevice opened{{std::move(device), optimizer::make_gpu_state}, facts.name, facts.uuid};
  add_nccl(logger, opened.compute);
  return opened;
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
