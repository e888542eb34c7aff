#include "runtime/cuda/context.h"

#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace paceline::cuda {

absl::StatusOr<std::shared_ptr<const Context>> Context::open(std::shared_ptr<const Driver> driver,
                                                             int ordinal) {
  PL_ASSIGN_OR_RETURN(std::vector<DeviceFacts> devices, list_devices(*driver));
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices.size())
    return absl::InvalidArgumentError(
        str_cat("there is no GPU ", ordinal, ": this process may use ", devices.size()));
  CUdevice device = 0;
  PL_RETURN_IF_ERROR(driver->check(driver->calls().cuDeviceGet(&device, ordinal), "cuDeviceGet"));
  DeviceFacts& facts = devices[static_cast<std::size_t>(ordinal)];
  std::shared_ptr<Context> context(new Context(std::move(driver), std::move(facts), device));
  PL_RETURN_IF_ERROR(context->check(context->calls().cuDevicePrimaryCtxRetain(&context->handle_, device),
                                    "cuDevicePrimaryCtxRetain"));
  PL_RETURN_IF_ERROR(context->enter());
  return context;
}

Context::~Context() {
  if (handle_ != nullptr) calls().cuDevicePrimaryCtxRelease(device_);
}

absl::Status Context::enter() const {
  return check(calls().cuCtxSetCurrent(handle_), "cuCtxSetCurrent");
}

absl::StatusOr<Context::MemoryInfo> Context::memory() const {
  PL_RETURN_IF_ERROR(enter());
  MemoryInfo info;
  PL_RETURN_IF_ERROR(check(calls().cuMemGetInfo(&info.free_bytes, &info.total_bytes), "cuMemGetInfo"));
  return info;
}

}  // namespace paceline::cuda
