// Devices, contexts, modules and kernels. cuda.h maps names to their newer ones: what is exported is named
// after that, as in the real library.

#include "tests/support/fake_cuda/fake_cuda.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/support/fake_cuda/state.h"

namespace paceline::fake_cuda {

State& state() {
  static State* const state = [] {
    auto* const made = new State;
    if (const char* const mebibytes = std::getenv("FAKE_CUDA_MEMORY_MIB"); mebibytes != nullptr)
      made->control.memory_bytes = std::strtoull(mebibytes, nullptr, 10) << 20;
    if (const char* const devices = std::getenv("FAKE_CUDA_DEVICES"); devices != nullptr)
      made->control.devices = std::atoi(devices);
    return made;
  }();
  return *state;
}
std::mutex& lock() {
  static std::mutex* const lock = new std::mutex;
  return *lock;
}
CUcontext& current_context() {
  thread_local CUcontext context = nullptr;
  return context;
}

CUresult asked(const char* call) {
  std::function<CUresult(const std::string&)> fail;
  {
    const std::lock_guard held(lock());
    ++state().calls[call];
    if (state().failed != CUDA_SUCCESS) return state().failed;
    fail = state().control.fail;
  }
  if (fail) return fail(call);
  static const char* const refused = std::getenv("FAKE_CUDA_REFUSES");
  return refused != nullptr && std::strcmp(call, refused) == 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}
CUresult asked_in_context(const char* call) {
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return asked(call);
}

namespace {

constexpr std::uintptr_t kContexts = 0x100;  // handles: this, and the device

class Library final : public FakeCuda {
 public:
  Control& control() override { return state().control; }
  Counts counts() override {
    const std::lock_guard held(lock());
    const State& s = state();
    Counts counts{s.device.count(),
                  s.pinned.count() + s.registered.size(),
                  s.streams.count(),
                  s.streams.event_count(),
                  s.modules.size(),
                  0,
                  s.graphs.size() + s.executable_graphs.size()};
    for (const auto& [device, held_times] : s.contexts)
      counts.contexts += static_cast<std::size_t>(held_times);
    return counts;
  }
  std::vector<std::string> problems() override {
    const std::lock_guard held(lock());
    return state().problems;
  }
  void forgive() override {
    const std::lock_guard held(lock());
    state().problems.clear();
    state().failed = CUDA_SUCCESS;
  }
  std::size_t kernels_run() override {
    const std::lock_guard held(lock());
    return state().kernels_run;
  }
  std::size_t runs_of(const std::string& kernel) override {
    const std::lock_guard held(lock());
    const auto found = state().runs.find(kernel);
    return found == state().runs.end() ? 0 : found->second;
  }
  std::size_t calls_of(const std::string& call) override {
    const std::lock_guard held(lock());
    const auto found = state().calls.find(call);
    return found == state().calls.end() ? 0 : found->second;
  }
  Traffic traffic() override {
    const std::lock_guard held(lock());
    return state().traffic;
  }
  bool holds(const void* address, std::size_t bytes) override {
    const std::lock_guard held(lock());
    return state().device.contains(address, bytes);
  }
  bool add(CUstream stream, std::function<void()> work) override {
    const std::lock_guard held(lock());
    if (!state().streams.has(id<StreamId>(stream))) return false;
    state().streams.add(id<StreamId>(stream), std::move(work));
    return true;
  }
  bool add_gate(CUstream stream, std::function<bool()> gate) override {
    const std::lock_guard held(lock());
    if (!state().streams.has(id<StreamId>(stream))) return false;
    state().streams.add_gate(id<StreamId>(stream), std::move(gate));
    return true;
  }
  int priority(CUstream stream) override {
    const std::lock_guard held(lock());
    const auto number = id<StreamId>(stream);
    return state().streams.has(number) ? state().streams.priority(number) : 0;
  }
  int current_device() override {
    const CUcontext context = current_context();
    return context == nullptr ? -1 : static_cast<int>(reinterpret_cast<std::uintptr_t>(context) - kContexts);
  }
  void report(std::string problem) override {
    const std::lock_guard held(lock());
    state().problems.push_back(std::move(problem));
  }
  void reset() override {
    const std::lock_guard held(lock());
    state() = State();
    current_context() = nullptr;
  }
};

// A whole image, by its header (fatbinary_section.h); empty where it is none.
std::string image_bytes(const void* image) {
  struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;
  } header;
  std::memcpy(&header, image, sizeof header);
  if (header.magic != 0xba55ed50U) return "";
  return {static_cast<const char*>(image), header.header_bytes + header.bytes};
}

void run_kernel(const Kernel& kernel, const std::string& parameters, Index blocks, Index threads,
                std::size_t shared_bytes) {
  State& s = state();
  if (s.failed != CUDA_SUCCESS) return;
  ++s.kernels_run;
  ++s.runs[kernel.name];
  const std::size_t n = std::size_t{blocks.x} * blocks.y * blocks.z;
  s.traffic.threads += n * threads.x * threads.y * threads.z;
  for (std::size_t k = 0; k < n; ++k) {
    const auto b = static_cast<unsigned>(s.control.order == Order::kAscending ? k : n - 1 - k);
    const Index block{b % blocks.x, b / blocks.x % blocks.y, b / blocks.x / blocks.y};
    const std::string problem =
        run_block(kernel, parameters.data(), threads, blocks, block, s.control.order, shared_bytes);
    if (problem.empty()) continue;
    s.failed = s.problem(CUDA_ERROR_LAUNCH_FAILED, problem);
    return;
  }
}

}  // namespace
}  // namespace paceline::fake_cuda

using namespace paceline::fake_cuda;  // NOLINT: this file is the library of that name

EXPORTED FakeCuda* paceline_fake_cuda() {
  static auto* const library = new Library;
  return library;
}

EXPORTED CUresult cuDriverGetVersion(int* version) {
  *version = state().control.version;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuInit(unsigned) {
  explain_faults();
  const CUresult result = asked("cuInit");
  return result == CUDA_SUCCESS ? state().control.init : result;
}
EXPORTED CUresult cuGetErrorName(CUresult error, const char** name) {
  static const std::map<int, const char*> names{
      {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
      {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
      {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
      {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
      {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
      {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
      {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
      {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
      {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE"},
      {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
      {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
      {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
      {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"},
  };
  const auto found = names.find(static_cast<int>(error));
  *name = found == names.end() ? nullptr : found->second;
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
EXPORTED CUresult cuGetErrorString(CUresult error, const char** words) {
  *words = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : nullptr;
  return *words == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetCount(int* count) {
  BEGIN_CALL(asked);
  *count = state().control.devices;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  BEGIN_CALL(asked);
  if (ordinal < 0 || ordinal >= state().control.devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  BEGIN_CALL(asked);
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(bytes));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetPCIBusId(char* id, int bytes, CUdevice device) {
  BEGIN_CALL(asked);
  std::strncpy(id, ("0000:0" + std::to_string(device) + ":00.0").c_str(), static_cast<std::size_t>(bytes));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  BEGIN_CALL(asked);
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(i * 16 + device);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  BEGIN_CALL(asked);
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? state().control.capability / 10
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? state().control.capability % 10
           : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? state().control.multiprocessors
                                                                       : 0;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
  BEGIN_CALL(asked);
  *bytes = state().control.memory_bytes;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  BEGIN_CALL(asked);
  ++state().contexts[device];
  *context = reinterpret_cast<CUcontext>(kContexts + static_cast<unsigned>(device));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  BEGIN_CALL(asked);
  const auto found = state().contexts.find(device);
  if (found == state().contexts.end() || found->second == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --found->second;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxSetCurrent(CUcontext context) {
  BEGIN_CALL(asked);
  current_context() = context;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  BEGIN_CALL(asked_in_context);
  REFUSE_IN_CAPTURE();
  std::string bytes = image_bytes(image);
  if (bytes.empty()) return CUDA_ERROR_INVALID_IMAGE;
  *module = state().handle<CUmodule>();
  state().modules[*module] = std::move(bytes);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuModuleUnload(CUmodule module) {
  BEGIN_CALL(asked_in_context);
  REFUSE_IN_CAPTURE();
  return state().modules.erase(module) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
// In the image, as nvcc compiled it, and here, as the host's compiler did.
EXPORTED CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  BEGIN_CALL(asked_in_context);
  const auto found = state().modules.find(module);
  if (found == state().modules.end()) return CUDA_ERROR_INVALID_HANDLE;
  const Kernel* const kernel = find_kernel(name);
  if (kernel == nullptr || found->second.find(std::string(".text.") + name + '\0') == std::string::npos)
    return CUDA_ERROR_NOT_FOUND;
  *function = state().handle<CUfunction>();
  state().functions[*function] = {.kernel = kernel};
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset,
                                     std::size_t* bytes) {
  BEGIN_CALL(asked_in_context);
  const auto found = state().functions.find(function);
  if (found == state().functions.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (index != 0) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  *bytes = found->second.kernel->parameter_bytes;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  BEGIN_CALL(asked_in_context);
  const auto found = state().functions.find(function);
  if (found == state().functions.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      static_cast<std::size_t>(value) > state().control.shared_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  found->second.shared_bytes = static_cast<std::size_t>(value);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuLaunchKernel(CUfunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                                 unsigned threads_x, unsigned threads_y, unsigned threads_z,
                                 unsigned shared_bytes, CUstream stream, void** parameters, void**) {
  BEGIN_CALL(asked_in_context);
  State& s = state();
  const auto found = s.functions.find(function);
  if (found == s.functions.end() || !s.streams.has(id<StreamId>(stream))) return CUDA_ERROR_INVALID_HANDLE;
  const Kernel& kernel = *found->second.kernel;
  const std::size_t threads = std::size_t{threads_x} * threads_y * threads_z;
  const bool grid = blocks_x > 0 && blocks_x <= 0x7fffffffU && blocks_y > 0 && blocks_y <= 0xffff &&
                    blocks_z > 0 && blocks_z <= 0xffff;
  if (!grid || threads == 0 || threads > kernel.most_threads || threads > kMostThreads ||
      shared_bytes > found->second.shared_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  // Taken now, run later.
  s.streams.add(
      id<StreamId>(stream),
      [&kernel, bytes = std::string(static_cast<const char*>(parameters[0]), kernel.parameter_bytes),
       blocks = Index{blocks_x, blocks_y, blocks_z}, size = Index{threads_x, threads_y, threads_z},
       shared_bytes] { run_kernel(kernel, bytes, blocks, size, shared_bytes); });
  return CUDA_SUCCESS;
}
