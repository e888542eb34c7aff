#include "tests/support/fake_cuda/fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

// cuda.h maps names to their newer ones: what is exported is named after that, as in the real one.
namespace paceline::fake_cuda {
namespace {

struct State {
  std::mutex mutex;
  Control control;
  std::map<void*, std::size_t> memory;  // of the device
  std::size_t used = 0;
};

State& state() {
  static State* const state = new State;
  return *state;
}

// What the test wants this call to give; CUDA_SUCCESS: go on.
CUresult asked(const char* call) {
  std::function<CUresult(const std::string&)> fail;
  {
    const std::lock_guard lock(state().mutex);
    fail = state().control.fail;
  }
  return fail ? fail(call) : CUDA_SUCCESS;
}

template <typename Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

CUresult copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace paceline::fake_cuda

using paceline::fake_cuda::asked;
using paceline::fake_cuda::copy;
using paceline::fake_cuda::handle;
using paceline::fake_cuda::state;

#define FAIL_IF_ASKED()                                                  \
  if (const CUresult wanted = asked(__func__); wanted != CUDA_SUCCESS) { \
    return wanted;                                                       \
  }

EXPORTED paceline::fake_cuda::Control& paceline_fake_cuda() {
  return state().control;
}

EXPORTED CUresult cuDriverGetVersion(int* version) {
  *version = state().control.version;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuInit(unsigned) {
  return state().control.init;
}
EXPORTED CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_NO_DEVICE   ? "CUDA_ERROR_NO_DEVICE"
          : error == CUDA_ERROR_UNKNOWN     ? "CUDA_ERROR_UNKNOWN"
                                            : nullptr;
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
EXPORTED CUresult cuGetErrorString(CUresult error, const char** words) {
  *words = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : nullptr;
  return *words == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetCount(int* count) {
  FAIL_IF_ASKED()
  *count = state().control.devices;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAIL_IF_ASKED()
  if (ordinal < 0 || ordinal >= state().control.devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  FAIL_IF_ASKED()
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(bytes));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetPCIBusId(char* id, int bytes, CUdevice device) {
  FAIL_IF_ASKED()
  std::strncpy(id, ("0000:0" + std::to_string(device) + ":00.0").c_str(), static_cast<std::size_t>(bytes));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  FAIL_IF_ASKED()
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(i * 16 + device);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  FAIL_IF_ASKED()
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
           : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 132
                                                                       : 0;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
  FAIL_IF_ASKED()
  *bytes = state().control.memory_bytes;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAIL_IF_ASKED()
  *context = handle<CUcontext>(0x100u + static_cast<unsigned>(device));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxSetCurrent(CUcontext) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuModuleLoadData(CUmodule* module, const void*) {
  FAIL_IF_ASKED()
  *module = handle<CUmodule>(0x200);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuModuleUnload(CUmodule) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  FAIL_IF_ASKED()
  *function = handle<CUfunction>(0x300);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, CUstream, void**, void**) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  FAIL_IF_ASKED()
  const std::lock_guard lock(state().mutex);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > state().control.memory_bytes - state().used) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  state().memory[memory] = bytes;
  state().used += bytes;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemFree(CUdeviceptr address) {
  FAIL_IF_ASKED()
  const std::lock_guard lock(state().mutex);
  const auto found = state().memory.find(reinterpret_cast<void*>(address));
  if (found == state().memory.end()) return CUDA_ERROR_INVALID_VALUE;
  state().used -= found->second;
  std::free(found->first);
  state().memory.erase(found);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  FAIL_IF_ASKED()
  const std::lock_guard lock(state().mutex);
  *total = state().control.memory_bytes;
  *free = *total - state().used;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  FAIL_IF_ASKED()
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *address == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
EXPORTED CUresult cuMemFreeHost(void* address) {
  FAIL_IF_ASKED()
  std::free(address);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
  FAIL_IF_ASKED()
  return copy(reinterpret_cast<void*>(to), from, bytes);
}
EXPORTED CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
  FAIL_IF_ASKED()
  return copy(to, reinterpret_cast<const void*>(from), bytes);
}
EXPORTED CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
  FAIL_IF_ASKED()
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}
EXPORTED CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes, CUstream) {
  FAIL_IF_ASKED()
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamCreate(CUstream* stream, unsigned) {
  FAIL_IF_ASKED()
  *stream = handle<CUstream>(0x400);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamDestroy(CUstream) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamSynchronize(CUstream) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamQuery(CUstream) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventCreate(CUevent* event, unsigned) {
  FAIL_IF_ASKED()
  *event = handle<CUevent>(0x500);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventDestroy(CUevent) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventRecord(CUevent, CUstream) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventQuery(CUevent) {
  FAIL_IF_ASKED()
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  FAIL_IF_ASKED()
  *milliseconds = 0;
  return CUDA_SUCCESS;
}
