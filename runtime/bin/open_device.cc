#include "runtime/bin/open_device.h"

#include <cstdlib>

#include "base/process_end.h"
#include "base/status.h"
#include "runtime/device/choose_device.h"

#if defined(PACELINE_WITH_CUDA)
#include "runtime/nccl/view_exchanges.h"
#include "runtime/optimizer/gpu/gpu_state.h"
#include "runtime/tensor/gpu/gpu_queue.h"
#endif

namespace paceline {

void end_stuck(const Logger& logger, const std::string& what) {
  logger.error(str_cat(what, ": this process ends, and leaves its place to another"));
  std::_Exit(kExitStuck);
}

#if defined(PACELINE_WITH_CUDA)

namespace {

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
  const auto exchanges = std::make_shared<nccl::ViewExchanges>(*std::move(library), logger, [logger] {
    end_stuck(logger, "NCCL does not let go of its communicator, and the GPU may still be at work for it");
  });
  compute.open_exchange = [exchanges](exchange::DeviceExchangeParts parts, Deadline deadline) {
    cuda::Stream& stream = static_cast<tensor::gpu::GpuQueue&>(parts.queue).stream();
    return exchanges->open(std::move(parts), stream, deadline);
  };
  compute.let_exchange_go = [exchanges] { exchanges->let_go(); };
}

}  // namespace

#endif

absl::StatusOr<OpenedDevice> open_device(const member::Environment& environment, int threads,
                                         const Logger& logger) {
  const device::GpuUse use{
      .graphs = environment.cuda_graphs,
      .no_graphs =
          [logger](const absl::Status& why) {
            logger.warning(
                str_cat("passes are not kept as CUDA graphs, and each of their kernels is launched: ",
                        why.message()));
          },
      .not_pinned =
          [logger](const absl::Status& why) {
            logger.warning(
                str_cat("memory of the host is not pinned for the GPU, so that copies of it are "
                        "slower, and hold up this member: ",
                        why.message(), "; the limit of locked memory (ulimit -l) may be too low"));
          }};
  PL_ASSIGN_OR_RETURN(device::ChosenDevice chosen,
                      device::choose_device(environment.device, environment.slot, threads, use));
  if (!chosen.warning.empty()) logger.warning(chosen.warning);
  const bool plain = !chosen.gpu.empty() && !environment.cuda_graphs;
  logger.info(str_cat("computes for ", environment.job, " ", chosen.words,
                      plain ? "; kernels are launched one by one (PACELINE_CUDA_GRAPHS=off)" : ""));
  // Most machines have none: at a higher level it would read like a fault of whatever fails next.
  if (!chosen.no_gpu.empty()) logger.debug(str_cat("there is no GPU: ", chosen.no_gpu));
  OpenedDevice opened{
      {std::move(chosen.device)}, std::move(chosen.gpu), std::move(chosen.gpu_uuid), chosen.gpu_index};
#if defined(PACELINE_WITH_CUDA)
  if (!opened.gpu.empty()) {
    opened.compute.make_state = optimizer::make_gpu_state;
    opened.compute.device_id = opened.gpu_uuid;
    opened.compute.times = std::make_shared<tensor::DeviceTimer::Sums>();
    add_nccl(logger, opened.compute);
  }
#endif
  return opened;
}

}  // namespace paceline
