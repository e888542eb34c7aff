#include "tests/support/fake_nvml/fake_nvml.h"

#include <mutex>
#include <string_view>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace paceline::fake_nvml {
namespace {

struct State {
  Control control;
  int begun = 0, event_sets = 0;
};
State& state() {
  static auto* const state = new State;
  return *state;
}
std::mutex& lock() {
  static auto* const lock = new std::mutex;
  return *lock;
}

class Library final : public FakeNvml {
 public:
  Control& control() override { return state().control; }
  int begun() override {
    const std::lock_guard held(lock());
    return state().begun;
  }
  int event_sets() override {
    const std::lock_guard held(lock());
    return state().event_sets;
  }
  void reset() override {
    const std::lock_guard held(lock());
    state() = State();
  }
};

int the_device = 0, the_instance = 0;
nvmlDevice_t device() {
  return reinterpret_cast<nvmlDevice_t>(&the_device);
}
nvmlDevice_t instance() {
  return reinterpret_cast<nvmlDevice_t>(&the_instance);
}

// What this call is to give; the lock is held.
nvmlReturn_t wanted(const char* call, nvmlDevice_t of) {
  if (state().begun == 0) return NVML_ERROR_UNINITIALIZED;
  if (of != device() && !(of == instance() && std::string_view(call) == "nvmlDeviceGetMemoryInfo_v2"))
    return NVML_ERROR_INVALID_ARGUMENT;
  const auto found = state().control.results.find(call);
  return found == state().control.results.end() ? NVML_SUCCESS : found->second;
}

template <typename T>
nvmlReturn_t give(const char* call, nvmlDevice_t of, T* value, T what) {
  const std::lock_guard held(lock());
  const nvmlReturn_t result = wanted(call, of);
  if (result == NVML_SUCCESS) *value = what;
  return result;
}

}  // namespace
}  // namespace paceline::fake_nvml

using namespace paceline::fake_nvml;  // NOLINT: this file is the library of that name

EXPORTED FakeNvml* paceline_fake_nvml() {
  static auto* const library = new Library;
  return library;
}

EXPORTED nvmlReturn_t nvmlInit_v2() {
  const std::lock_guard held(lock());
  const auto found = state().control.results.find(__func__);
  if (found != state().control.results.end()) return found->second;
  ++state().begun;
  return NVML_SUCCESS;
}
EXPORTED nvmlReturn_t nvmlShutdown() {
  const std::lock_guard held(lock());
  --state().begun;
  return NVML_SUCCESS;
}
EXPORTED const char* nvmlErrorString(nvmlReturn_t result) {
  return result == NVML_ERROR_GPU_IS_LOST ? "GPU is lost" : "an error of the tests";
}
EXPORTED nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* handle) {
  const std::lock_guard held(lock());
  if (state().begun == 0) return NVML_ERROR_UNINITIALIZED;
  const Control& c = state().control;
  if (uuid == c.uuid) {
    *handle = device();
  } else if (!c.mig_uuid.empty() && uuid == c.mig_uuid) {
    *handle = instance();
  } else {
    return NVML_ERROR_NOT_FOUND;
  }
  return NVML_SUCCESS;
}
EXPORTED nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t of, nvmlDevice_t* handle) {
  if (of != instance()) return NVML_ERROR_INVALID_ARGUMENT;
  *handle = device();
  return NVML_SUCCESS;
}
EXPORTED nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t of, unsigned* number) {
  const std::lock_guard held(lock());
  if (of != instance()) return NVML_ERROR_INVALID_ARGUMENT;
  *number = state().control.mig_instance;
  return NVML_SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t of, nvmlUtilization_t* load) {
  return give(__func__, of, load,
              nvmlUtilization_t{state().control.utilization, state().control.memory_utilization});
}
EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t of, nvmlMemory_v2_t* memory) {
  if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const Control& c = state().control;
  const bool whole = of == device();
  const unsigned long long total = whole ? c.memory_total : c.mig_memory_total;
  const unsigned long long used = whole ? c.memory_used : total / 4;
  return give(__func__, of, memory,
              nvmlMemory_v2_t{.version = nvmlMemory_v2,
                              .total = total,
                              .reserved = c.memory_reserved,
                              .free = total - c.memory_reserved - used,
                              .used = used});
}
EXPORTED nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t of, nvmlClockType_t type, unsigned* mhz) {
  const Control& c = state().control;
  return give(__func__, of, mhz, type == NVML_CLOCK_SM ? c.sm_clock : c.memory_clock);
}
EXPORTED nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t of, nvmlClockType_t type, unsigned* mhz) {
  const Control& c = state().control;
  return give(__func__, of, mhz, type == NVML_CLOCK_SM ? c.most_sm_clock : c.most_memory_clock);
}
EXPORTED nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t of, nvmlTemperature_t* heat) {
  if (heat->version != nvmlTemperature_v1 || heat->sensorType != NVML_TEMPERATURE_GPU)
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return give(__func__, of, &heat->temperature, state().control.temperature);
}
EXPORTED nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t of, unsigned* milliwatts) {
  return give(__func__, of, milliwatts, state().control.power);
}
EXPORTED nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t of, unsigned* milliwatts) {
  return give(__func__, of, milliwatts, state().control.power_limit);
}
EXPORTED nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t of, unsigned long long* reasons) {
  return give(__func__, of, reasons, state().control.throttle_reasons);
}
EXPORTED nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t of, nvmlMemoryErrorType_t type,
                                                  nvmlEccCounterType_t counter, unsigned long long* count) {
  if (counter != NVML_VOLATILE_ECC) return NVML_ERROR_INVALID_ARGUMENT;
  const Control& c = state().control;
  return give(__func__, of, count, type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? c.corrected : c.uncorrected);
}
EXPORTED nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t of, unsigned* count) {
  return give(__func__, of, count, state().control.replays);
}

EXPORTED nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* events) {
  const std::lock_guard held(lock());
  const nvmlReturn_t result = wanted(__func__, device());
  if (result != NVML_SUCCESS) return result;
  *events = reinterpret_cast<nvmlEventSet_t>(new int);
  ++state().event_sets;
  return NVML_SUCCESS;
}
EXPORTED nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t events) {
  const std::lock_guard held(lock());
  delete reinterpret_cast<int*>(events);
  --state().event_sets;
  return NVML_SUCCESS;
}
EXPORTED nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t of, unsigned long long types, nvmlEventSet_t) {
  const std::lock_guard held(lock());
  if (types != nvmlEventTypeXidCriticalError) return NVML_ERROR_INVALID_ARGUMENT;
  return wanted(__func__, of);
}
EXPORTED nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t, nvmlEventData_t* event, unsigned milliseconds) {
  const std::lock_guard held(lock());
  if (milliseconds != 0) return NVML_ERROR_INVALID_ARGUMENT;  // nobody is to wait
  auto& xids = state().control.xids;
  if (xids.empty()) return NVML_ERROR_TIMEOUT;
  *event = {};
  event->device = device();
  event->eventType = nvmlEventTypeXidCriticalError;
  event->eventData = xids.front();
  event->gpuInstanceId = state().control.xid_instance;
  xids.pop_front();
  return NVML_SUCCESS;
}
