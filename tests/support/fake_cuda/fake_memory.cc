// Memory and copies.

#include <cstring>

#include "tests/support/fake_cuda/state.h"

using namespace paceline::fake_cuda;  // NOLINT: this file is the library of that name

namespace {

const void* host_pointer(CUdeviceptr address) {
  return reinterpret_cast<const void*>(address);
}
void* writable(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

CUresult not_ours(const char* call, std::size_t bytes) {
  return state().problem(CUDA_ERROR_INVALID_VALUE, std::string(call) + ": " + std::to_string(bytes) +
                                                       " bytes are not of one allocation");
}

void free_in(Memory& memory, void* address, CUresult& result) {
  std::string problem;
  if (!memory.free(address, problem)) result = CUDA_ERROR_INVALID_VALUE;
  if (!problem.empty()) state().problems.push_back(problem);
}

// Memory that is not pinned is read or written before the call returns, which a capture can't keep.
#define REFUSE_PAGEABLE(stream)                         \
  if (state().streams.captures(id<StreamId>(stream))) { \
    state().streams.spoil(id<StreamId>(stream));        \
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;       \
  }

}  // namespace

EXPORTED CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  BEGIN_CALL(asked_in_context);
  REFUSE_IN_CAPTURE();
  State& s = state();
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > s.control.memory_bytes - s.device.used()) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const memory = s.device.allocate(bytes);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
// Waits for all of the device, as the real one does.
EXPORTED CUresult cuMemFree(CUdeviceptr address) {
  BEGIN_CALL(asked_in_context);
  REFUSE_IN_CAPTURE();
  state().streams.finish_all();
  CUresult result = CUDA_SUCCESS;
  free_in(state().device, writable(address), result);
  return result;
}
EXPORTED CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  BEGIN_CALL(asked_in_context);
  *total = state().control.memory_bytes;
  *free = *total - state().device.used();
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  BEGIN_CALL(asked_in_context);
  REFUSE_IN_CAPTURE();
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *address = state().pinned.allocate(bytes);
  return *address == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
EXPORTED CUresult cuMemFreeHost(void* address) {
  BEGIN_CALL(asked_in_context);
  REFUSE_IN_CAPTURE();
  state().streams.finish_all();
  CUresult result = CUDA_SUCCESS;
  free_in(state().pinned, address, result);
  return result;
}

EXPORTED CUresult cuMemHostRegister(void* address, std::size_t bytes, unsigned) {
  BEGIN_CALL(asked_in_context);
  REFUSE_IN_CAPTURE();
  auto& registered = state().registered;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto after = registered.lower_bound(begin + bytes);
  if (after != registered.begin() && std::prev(after)->first + std::prev(after)->second > begin)
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  registered[begin] = bytes;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemHostUnregister(void* address) {
  BEGIN_CALL(asked_in_context);
  REFUSE_IN_CAPTURE();
  return state().registered.erase(reinterpret_cast<std::uintptr_t>(address)) == 1
             ? CUDA_SUCCESS
             : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

// From and to pinned memory later, in the stream's order; pageable memory is read, or written, before the
// call returns.
EXPORTED CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  BEGIN_CALL(asked_in_context);
  State& s = state();
  if (!s.streams.has(id<StreamId>(stream))) return CUDA_ERROR_INVALID_HANDLE;
  if (!s.device.contains(host_pointer(to), bytes)) return not_ours(__func__, bytes);
  if (!s.is_pinned(from, bytes)) REFUSE_PAGEABLE(stream);
  if (s.is_pinned(from, bytes)) {
    s.streams.add(id<StreamId>(stream), [=] { std::memcpy(writable(to), from, bytes); });
  } else {
    s.streams.add(id<StreamId>(stream), [to, staged = std::string(static_cast<const char*>(from), bytes)] {
      std::memcpy(writable(to), staged.data(), staged.size());
    });
  }
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  BEGIN_CALL(asked_in_context);
  State& s = state();
  if (!s.streams.has(id<StreamId>(stream))) return CUDA_ERROR_INVALID_HANDLE;
  if (!s.device.contains(host_pointer(from), bytes)) return not_ours(__func__, bytes);
  if (!s.is_pinned(to, bytes)) REFUSE_PAGEABLE(stream);
  s.streams.add(id<StreamId>(stream), [=] { std::memcpy(to, host_pointer(from), bytes); });
  if (!s.is_pinned(to, bytes)) finish(id<StreamId>(stream), held);
  return s.failed;
}
EXPORTED CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  BEGIN_CALL(asked_in_context);
  State& s = state();
  if (!s.streams.has(id<StreamId>(stream))) return CUDA_ERROR_INVALID_HANDLE;
  if (!s.device.contains(host_pointer(from), bytes) || !s.device.contains(host_pointer(to), bytes))
    return not_ours(__func__, bytes);
  s.streams.add(id<StreamId>(stream), [=] { std::memmove(writable(to), host_pointer(from), bytes); });
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes,
                                  CUstream stream) {
  BEGIN_CALL(asked_in_context);
  State& s = state();
  if (!s.streams.has(id<StreamId>(stream))) return CUDA_ERROR_INVALID_HANDLE;
  if (!s.device.contains(host_pointer(address), bytes)) return not_ours(__func__, bytes);
  s.streams.add(id<StreamId>(stream), [=] { std::memset(writable(address), value, bytes); });
  return CUDA_SUCCESS;
}
