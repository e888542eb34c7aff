#include "runtime/cuda/gpu_monitor.h"

#include <nvml.h>

#include <array>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "runtime/cuda/shared_object.h"

namespace paceline::cuda {

namespace {

constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";
constexpr unsigned kWhole = 0xffffffff;  // the number of no MIG instance: what is the whole GPU's

// clang-format off
#define PACELINE_NVML_CALLS(X)                                                                                \
  X(nvmlInit_v2) X(nvmlShutdown) X(nvmlErrorString) X(nvmlDeviceGetHandleByUUID)                              \
  X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle) X(nvmlDeviceGetGpuInstanceId)                               \
  X(nvmlDeviceGetUtilizationRates) X(nvmlDeviceGetClockInfo) X(nvmlDeviceGetMaxClockInfo)                     \
  X(nvmlDeviceGetMemoryInfo_v2) X(nvmlDeviceGetTemperatureV) X(nvmlDeviceGetPowerUsage) X(nvmlDeviceGetEnforcedPowerLimit)                  \
  X(nvmlDeviceGetCurrentClocksEventReasons) X(nvmlDeviceGetTotalEccErrors) X(nvmlDeviceGetPcieReplayCounter)  \
  X(nvmlEventSetCreate) X(nvmlEventSetFree) X(nvmlDeviceRegisterEvents) X(nvmlEventSetWait_v2)
// clang-format on

struct Calls {
#define PACELINE_NVML_MEMBER(call) decltype(&::call) call = nullptr;
  PACELINE_NVML_CALLS(PACELINE_NVML_MEMBER)
#undef PACELINE_NVML_MEMBER
};

absl::StatusOr<Calls> open_library(const std::string& path) {
  const std::array names{path.empty() ? std::string(kNvmlLibrary) : path};
  PL_ASSIGN_OR_RETURN(const SharedObject library, SharedObject::open(names));
  Calls calls;
#define PACELINE_NVML_FIND(call) PL_RETURN_IF_ERROR(library.find(#call, calls.call));
  PACELINE_NVML_CALLS(PACELINE_NVML_FIND)
#undef PACELINE_NVML_FIND
  return calls;
}

absl::StatusCode code_of_nvml(nvmlReturn_t result) {
  switch (result) {
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return absl::StatusCode::kUnavailable;
    case NVML_ERROR_NOT_FOUND:
    case NVML_ERROR_LIBRARY_NOT_FOUND:
      return absl::StatusCode::kNotFound;
    default:
      return absl::StatusCode::kInternal;
  }
}

class Monitor final : public GpuMonitor {
 public:
  explicit Monitor(const Calls& calls) : calls_(calls) {}
  ~Monitor() override {
    if (events_ != nullptr) calls_.nvmlEventSetFree(events_);
    if (begun_) calls_.nvmlShutdown();
  }

  absl::Status begin(const std::string& uuid) {
    PL_RETURN_IF_ERROR(check(calls_.nvmlInit_v2(), "nvmlInit"));
    begun_ = true;
    PL_RETURN_IF_ERROR(find(uuid));
    // Without them nobody hears of Xids: where the driver, or this process's rights, do not allow it.
    if (calls_.nvmlEventSetCreate(&events_) != NVML_SUCCESS) {
      events_ = nullptr;
    } else if (calls_.nvmlDeviceRegisterEvents(gpu_, nvmlEventTypeXidCriticalError, events_) !=
               NVML_SUCCESS) {
      calls_.nvmlEventSetFree(std::exchange(events_, nullptr));
    }
    return absl::OkStatus();
  }

  GpuReading read() override {
    GpuReading reading;
    trouble_ = absl::OkStatus();
    read_load(reading.gpu);
    read_clocks(reading.gpu);
    read_power(reading.gpu);
    read_errors(reading.gpu);
    reading.trouble = trouble_;
    return reading;
  }

 private:
  // CUDA tells the uuid of a MIG instance as that of a GPU, and NVML knows it by another prefix.
  absl::Status find(const std::string& uuid) {
    constexpr std::string_view kGpu = "GPU-";
    const nvmlReturn_t found = calls_.nvmlDeviceGetHandleByUUID(uuid.c_str(), &device_);
    gpu_ = device_;
    if (found != NVML_ERROR_NOT_FOUND || !uuid.starts_with(kGpu))
      return check(found, "nvmlDeviceGetHandleByUUID");
    const std::string mig = str_cat("MIG-", uuid.substr(kGpu.size()));
    PL_RETURN_IF_ERROR(
        check(calls_.nvmlDeviceGetHandleByUUID(mig.c_str(), &device_), "nvmlDeviceGetHandleByUUID"));
    PL_RETURN_IF_ERROR(check(calls_.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_, &gpu_),
                             "nvmlDeviceGetDeviceHandleFromMigDeviceHandle"));
    unsigned instance = 0;
    PL_RETURN_IF_ERROR(
        check(calls_.nvmlDeviceGetGpuInstanceId(device_, &instance), "nvmlDeviceGetGpuInstanceId"));
    instance_ = instance;
    return absl::OkStatus();
  }

  absl::Status check(nvmlReturn_t result, const char* call) const {
    if (result == NVML_SUCCESS) return absl::OkStatus();
    return absl::Status(code_of_nvml(result), str_cat(call, ": ", calls_.nvmlErrorString(result), " (",
                                                      static_cast<int>(result), ")"));
  }

  // Whether the GPU has told a value. Some are not every GPU's, or not every user's to see, or fail now and
  // then; only a GPU or a driver that is gone is more than that.
  bool answered(nvmlReturn_t result, const char* call) {
    if (result == NVML_ERROR_GPU_IS_LOST || result == NVML_ERROR_UNINITIALIZED ||
        result == NVML_ERROR_DRIVER_NOT_LOADED)
      trouble_.Update(check(result, call));
    return result == NVML_SUCCESS;
  }

  void read_load(GpuTelemetry& gpu) {
    nvmlUtilization_t load{};
    if (answered(calls_.nvmlDeviceGetUtilizationRates(gpu_, &load), "nvmlDeviceGetUtilizationRates")) {
      gpu.utilization = load.gpu / 100.0;
      gpu.memory_utilization = load.memory / 100.0;
    }
    nvmlMemory_v2_t memory{.version = nvmlMemory_v2, .total = 0, .reserved = 0, .free = 0, .used = 0};
    if (answered(calls_.nvmlDeviceGetMemoryInfo_v2(device_, &memory), "nvmlDeviceGetMemoryInfo")) {
      gpu.memory_used_mib = static_cast<std::int64_t>(memory.used >> 20);
      gpu.memory_total_mib = static_cast<std::int64_t>(memory.total >> 20);
    }
    nvmlTemperature_t heat{
        .version = nvmlTemperature_v1, .sensorType = NVML_TEMPERATURE_GPU, .temperature = 0};
    if (answered(calls_.nvmlDeviceGetTemperatureV(gpu_, &heat), "nvmlDeviceGetTemperature"))
      gpu.temperature_celsius = static_cast<std::int64_t>(heat.temperature);
  }

  void read_clocks(GpuTelemetry& gpu) {
    struct Clock {
      nvmlClockType_t type;
      std::optional<std::int64_t>*now, *most;
    };
    for (const Clock& clock : {Clock{NVML_CLOCK_SM, &gpu.sm_clock_mhz, &gpu.most_sm_clock_mhz},
                               Clock{NVML_CLOCK_MEM, &gpu.memory_clock_mhz, &gpu.most_memory_clock_mhz}}) {
      unsigned mhz = 0;
      if (answered(calls_.nvmlDeviceGetClockInfo(gpu_, clock.type, &mhz), "nvmlDeviceGetClockInfo"))
        *clock.now = mhz;
      if (answered(calls_.nvmlDeviceGetMaxClockInfo(gpu_, clock.type, &mhz), "nvmlDeviceGetMaxClockInfo"))
        *clock.most = mhz;
    }
    unsigned long long reasons = 0;
    if (answered(calls_.nvmlDeviceGetCurrentClocksEventReasons(gpu_, &reasons),
                 "nvmlDeviceGetCurrentClocksEventReasons"))
      gpu.slowdowns = slowdowns(reasons);
  }

  void read_power(GpuTelemetry& gpu) {
    unsigned milliwatts = 0;
    if (answered(calls_.nvmlDeviceGetPowerUsage(gpu_, &milliwatts), "nvmlDeviceGetPowerUsage"))
      gpu.power_watts = milliwatts / 1000.0;
    if (answered(calls_.nvmlDeviceGetEnforcedPowerLimit(gpu_, &milliwatts),
                 "nvmlDeviceGetEnforcedPowerLimit"))
      gpu.power_limit_watts = milliwatts / 1000.0;
  }

  void read_errors(GpuTelemetry& gpu) {
    struct Ecc {
      nvmlMemoryErrorType_t type;
      std::optional<std::int64_t>* count;
    };
    for (const Ecc& ecc : {Ecc{NVML_MEMORY_ERROR_TYPE_CORRECTED, &gpu.corrected_ecc_errors},
                           Ecc{NVML_MEMORY_ERROR_TYPE_UNCORRECTED, &gpu.uncorrected_ecc_errors}}) {
      unsigned long long count = 0;
      if (answered(calls_.nvmlDeviceGetTotalEccErrors(gpu_, ecc.type, NVML_VOLATILE_ECC, &count),
                   "nvmlDeviceGetTotalEccErrors"))
        *ecc.count = static_cast<std::int64_t>(count);
    }
    unsigned replays = 0;
    if (answered(calls_.nvmlDeviceGetPcieReplayCounter(gpu_, &replays), "nvmlDeviceGetPcieReplayCounter"))
      gpu.pcie_replays = replays;
    count_xids();
    gpu.xids = xids_;
    gpu.last_xid = last_xid_;
  }

  // Those that have come; it never waits.
  void count_xids() {
    constexpr int kMostAtOnce = 1000;
    nvmlEventData_t event{};
    for (int i = 0; events_ != nullptr && i < kMostAtOnce; ++i) {
      if (calls_.nvmlEventSetWait_v2(events_, &event, 0) != NVML_SUCCESS) return;
      // Another's.
      if (instance_.has_value() && event.gpuInstanceId != kWhole && event.gpuInstanceId != *instance_)
        continue;
      ++xids_;
      last_xid_ = static_cast<std::int64_t>(event.eventData);
    }
  }

  const Calls calls_;
  bool begun_ = false;
  nvmlDevice_t device_ = nullptr, gpu_ = nullptr;  // a MIG instance, and the GPU of which it is; else one
  std::optional<unsigned> instance_;               // of MIG, its number
  nvmlEventSet_t events_ = nullptr;                // null: Xids are not told
  std::int64_t xids_ = 0, last_xid_ = 0;
  absl::Status trouble_;  // of the reading
};

}  // namespace

std::vector<std::string> slowdowns(std::uint64_t throttle_reasons) {
  struct Reason {
    std::uint64_t bit;
    const char* words;
  };
  std::vector<std::string> words;
  for (const Reason& reason : {Reason{nvmlClocksEventReasonSwPowerCap, "power cap"},
                               Reason{nvmlClocksEventReasonSwThermalSlowdown, "thermal (software)"},
                               Reason{nvmlClocksThrottleReasonHwThermalSlowdown, "thermal (hardware)"},
                               Reason{nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "power brake"},
                               Reason{nvmlClocksThrottleReasonHwSlowdown, "hardware slowdown"}}) {
    if ((throttle_reasons & reason.bit) != 0) words.emplace_back(reason.words);
  }
  return words;
}

absl::StatusOr<std::unique_ptr<GpuMonitor>> GpuMonitor::open(const std::string& uuid,
                                                             const std::string& path) {
  PL_ASSIGN_OR_RETURN(const Calls calls, open_library(path));
  auto monitor = std::make_unique<Monitor>(calls);
  PL_RETURN_IF_ERROR(monitor->begin(uuid));
  return monitor;
}

}  // namespace paceline::cuda
