#include "runtime/cuda/buffer.h"

#include <string>

#include "base/status.h"
#include "base/text.h"

namespace paceline::cuda {

namespace {

// Rounded down, as is right of what is free.
std::string amount(std::size_t bytes) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  return bytes < kMebibyte ? str_cat(bytes, " bytes") : str_cat(bytes / kMebibyte, " MiB");
}

}  // namespace

absl::StatusOr<DeviceBuffer> DeviceBuffer::create(std::shared_ptr<const Context> context, std::size_t bytes) {
  if (bytes == 0) return DeviceBuffer(std::move(context), nullptr, 0);
  PL_RETURN_IF_ERROR(context->enter());
  CUdeviceptr address = 0;
  const absl::Status status = context->check(context->calls().cuMemAlloc(&address, bytes), "cuMemAlloc");
  if (absl::IsResourceExhausted(status)) {
    PL_ASSIGN_OR_RETURN(const Context::MemoryInfo memory, context->memory());
    return absl::ResourceExhaustedError(
        str_cat("GPU ", context->device().ordinal, " (", context->device().name, ") has no ", amount(bytes),
                " left: ", amount(memory.free_bytes), " of ", amount(memory.total_bytes), " are free"));
  }
  PL_RETURN_IF_ERROR(status);
  return DeviceBuffer(std::move(context), reinterpret_cast<void*>(address), bytes);
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ != nullptr && context_->enter().ok())
    context_->calls().cuMemFree(reinterpret_cast<CUdeviceptr>(address_));
}

absl::StatusOr<PinnedBuffer> PinnedBuffer::create(std::shared_ptr<const Context> context, std::size_t bytes) {
  if (bytes == 0) return PinnedBuffer(std::move(context), {});
  PL_RETURN_IF_ERROR(context->enter());
  void* address = nullptr;
  const absl::Status status = context->check(
      context->calls().cuMemHostAlloc(&address, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
  if (absl::IsResourceExhausted(status))
    return absl::ResourceExhaustedError(str_cat("the host has no ", amount(bytes), " to pin for GPU ",
                                                context->device().ordinal, ": see its memory and limits"));
  PL_RETURN_IF_ERROR(status);
  return PinnedBuffer(std::move(context), {static_cast<std::byte*>(address), bytes});
}

PinnedBuffer::~PinnedBuffer() {
  if (!bytes_.empty() && context_->enter().ok()) context_->calls().cuMemFreeHost(bytes_.data());
}

absl::StatusOr<HostPin> HostPin::create(std::shared_ptr<const Context> context, std::span<std::byte> memory) {
  if (memory.empty()) return HostPin(std::move(context), {});
  PL_RETURN_IF_ERROR(context->enter());
  const CUresult result =
      context->calls().cuMemHostRegister(memory.data(), memory.size(), CU_MEMHOSTREGISTER_PORTABLE);
  const absl::Status status = context->check(result, "cuMemHostRegister");
  if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    return absl::AlreadyExistsError(std::string(status.message()));
  PL_RETURN_IF_ERROR(status);
  return HostPin(std::move(context), memory);
}

HostPin::~HostPin() {
  if (!memory_.empty() && context_->enter().ok()) context_->calls().cuMemHostUnregister(memory_.data());
}

}  // namespace paceline::cuda
