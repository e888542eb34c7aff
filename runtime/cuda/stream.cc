#include "runtime/cuda/stream.h"

#include "base/status.h"
#include "runtime/cuda/polling.h"

namespace paceline::cuda {

namespace {

// Asks until `query` no longer says CUDA_ERROR_NOT_READY.
template <typename Query>
absl::Status ask_until(const Context& context, const Clock& clock, Deadline deadline, const char* call,
                       Query query) {
  for (int asked = 0;; ++asked) {
    const CUresult result = query();
    if (result != CUDA_ERROR_NOT_READY) return context.check(result, call);
    if (deadline.expired(clock.now()))
      return absl::DeadlineExceededError("the GPU has not done what was to be done by now");
    pause_after(asked);
  }
}

CUdeviceptr device(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

}  // namespace

absl::StatusOr<Stream> Stream::create(std::shared_ptr<const Context> context, Priority priority) {
  PL_RETURN_IF_ERROR(context->enter());
  const Driver::Calls& call = context->calls();
  CUstream handle = nullptr;
  if (priority == Priority::kUsual) {
    PL_RETURN_IF_ERROR(
        context->check(call.cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  } else {
    int greatest = 0;
    PL_RETURN_IF_ERROR(
        context->check(call.cuCtxGetStreamPriorityRange(nullptr, &greatest), "cuCtxGetStreamPriorityRange"));
    PL_RETURN_IF_ERROR(
        context->check(call.cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, greatest),
                       "cuStreamCreateWithPriority"));
  }
  return Stream(std::move(context), handle);
}

Stream::~Stream() {
  if (handle_ != nullptr && context_->enter().ok()) context_->calls().cuStreamDestroy(handle_);
}

absl::Status Stream::to_device(void* to, std::span<const std::byte> from) {
  if (from.empty()) return absl::OkStatus();
  return context_->check(context_->calls().cuMemcpyHtoDAsync(device(to), from.data(), from.size(), handle_),
                         "cuMemcpyHtoDAsync");
}

absl::Status Stream::to_host(std::span<std::byte> to, const void* from) {
  if (to.empty()) return absl::OkStatus();
  return context_->check(context_->calls().cuMemcpyDtoHAsync(to.data(), device(from), to.size(), handle_),
                         "cuMemcpyDtoHAsync");
}

absl::Status Stream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return context_->check(context_->calls().cuMemcpyDtoDAsync(device(to), device(from), bytes, handle_),
                         "cuMemcpyDtoDAsync");
}

absl::Status Stream::clear(void* address, std::size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return context_->check(context_->calls().cuMemsetD8Async(device(address), 0, bytes, handle_),
                         "cuMemsetD8Async");
}

absl::Status Stream::wait_for(const Event& event) {
  return context_->check(context_->calls().cuStreamWaitEvent(handle_, event.handle(), 0),
                         "cuStreamWaitEvent");
}

absl::Status Stream::finish(const Clock& clock, Deadline deadline) {
  return ask_until(*context_, clock, deadline, "cuStreamQuery",
                   [&] { return context_->calls().cuStreamQuery(handle_); });
}

absl::StatusOr<Event> Event::create(std::shared_ptr<const Context> context, Kind kind) {
  PL_RETURN_IF_ERROR(context->enter());
  CUevent handle = nullptr;
  const unsigned flags = kind == Kind::kTiming ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  PL_RETURN_IF_ERROR(context->check(context->calls().cuEventCreate(&handle, flags), "cuEventCreate"));
  return Event(std::move(context), handle);
}

Event::~Event() {
  if (handle_ != nullptr && context_->enter().ok()) context_->calls().cuEventDestroy(handle_);
}

absl::Status Event::record(Stream& stream) {
  return context_->check(context_->calls().cuEventRecord(handle_, stream.handle()), "cuEventRecord");
}

absl::StatusOr<bool> Event::reached() const {
  const CUresult result = context_->calls().cuEventQuery(handle_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  PL_RETURN_IF_ERROR(context_->check(result, "cuEventQuery"));
  return true;
}

absl::Status Event::wait(const Clock& clock, Deadline deadline) const {
  return ask_until(*context_, clock, deadline, "cuEventQuery",
                   [&] { return context_->calls().cuEventQuery(handle_); });
}

absl::StatusOr<std::optional<Duration>> time_between(const Context& context, const Event& from,
                                                     const Event& to) {
  float milliseconds = 0;
  const CUresult result = context.calls().cuEventElapsedTime(&milliseconds, from.handle(), to.handle());
  if (result == CUDA_ERROR_NOT_READY) return std::nullopt;
  PL_RETURN_IF_ERROR(context.check(result, "cuEventElapsedTime"));
  return std::chrono::round<Duration>(std::chrono::duration<double, std::milli>(milliseconds));
}

}  // namespace paceline::cuda
