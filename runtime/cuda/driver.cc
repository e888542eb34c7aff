#include "runtime/cuda/driver.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/hex.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/cuda/shared_object.h"

namespace paceline::cuda {

namespace {

constexpr char kDriverLibrary[] = "libcuda.so.1";
constexpr char kInstall[] = "install driver 580 or newer";

std::string version_text(int version) {
  return str_cat(version / 1000, ".", version % 1000 / 10);
}

// cuda.h maps many names to newer ones (cuMemAlloc to cuMemAlloc_v2): a symbol is named after that.
#define PACELINE_CUDA_NAME_OF(call) #call
#define PACELINE_CUDA_NAME(call) PACELINE_CUDA_NAME_OF(call)

// One that is missing and one that is another are mended alike.
absl::Status no_driver(const absl::Status& why) {
  return absl::Status(why.code(), str_cat("no NVIDIA driver can be used: ", why.message(), "; ", kInstall));
}

absl::Status find_calls(const SharedObject& library, Driver::Calls& calls) {
#define PACELINE_CUDA_FIND(call) PL_RETURN_IF_ERROR(library.find(PACELINE_CUDA_NAME(call), calls.call));
  PACELINE_CUDA_DRIVER_CALLS(PACELINE_CUDA_FIND)
#undef PACELINE_CUDA_FIND
  return absl::OkStatus();
}

// "GPU-4b1d5d31-...": as nvidia-smi writes it.
std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex(std::string_view(&uuid.bytes[i], 1));
  }
  return text;
}

absl::StatusCode code_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return absl::StatusCode::kUnavailable;
    case CUDA_ERROR_NO_DEVICE:
      return absl::StatusCode::kNotFound;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Driver>> Driver::open(const std::string& path) {
  const std::array names{path.empty() ? std::string(kDriverLibrary) : path};
  const absl::StatusOr<SharedObject> library = SharedObject::open(names);
  if (!library.ok()) return no_driver(library.status());
  const std::shared_ptr<Driver> driver(new Driver);
  // The version first: an older driver lacks some of the calls, and that would be told instead.
  const absl::Status told = library->find("cuDriverGetVersion", driver->calls_.cuDriverGetVersion);
  if (!told.ok()) return no_driver(told);
  int& version = driver->cuda_version_;
  if (driver->calls_.cuDriverGetVersion(&version) != CUDA_SUCCESS)
    return absl::UnavailableError(str_cat(library->path(), " does not tell its version"));
  if (version < kLeastCudaVersion) {
    return absl::FailedPreconditionError(str_cat("the NVIDIA driver knows CUDA ", version_text(version),
                                                 ", and ", version_text(kLeastCudaVersion),
                                                 " is needed: ", kInstall));
  }
  if (const absl::Status found = find_calls(*library, driver->calls_); !found.ok()) return no_driver(found);
  const CUresult started = driver->calls_.cuInit(0);
  if (started != CUDA_SUCCESS) {
    const absl::Status status = driver->check(started, "cuInit");
    return absl::IsNotFound(status)
               ? status
               : absl::UnavailableError(str_cat("the NVIDIA driver does not start: ", status.message()));
  }
  return driver;
}

absl::Status Driver::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char *name = nullptr, *words = nullptr;
  if (calls_.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  if (calls_.cuGetErrorString(result, &words) != CUDA_SUCCESS) words = nullptr;
  return absl::Status(code_of(result), str_cat(call, ": ", name, " (", static_cast<int>(result), ")",
                                               words == nullptr ? "" : ": ", words == nullptr ? "" : words));
}

absl::StatusOr<std::vector<DeviceFacts>> list_devices(const Driver& driver) {
  const Driver::Calls& call = driver.calls();
  int count = 0;
  PL_RETURN_IF_ERROR(driver.check(call.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<DeviceFacts> devices;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    PL_RETURN_IF_ERROR(driver.check(call.cuDeviceGet(&device, i), "cuDeviceGet"));
    DeviceFacts facts{.ordinal = i};
    std::array<char, 256> text{};
    PL_RETURN_IF_ERROR(
        driver.check(call.cuDeviceGetName(text.data(), text.size() - 1, device), "cuDeviceGetName"));
    facts.name = text.data();
    text = {};
    PL_RETURN_IF_ERROR(
        driver.check(call.cuDeviceGetPCIBusId(text.data(), text.size() - 1, device), "cuDeviceGetPCIBusId"));
    facts.pci_bus_id = text.data();
    CUuuid uuid{};
    PL_RETURN_IF_ERROR(driver.check(call.cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid"));
    facts.uuid = uuid_text(uuid);
    PL_RETURN_IF_ERROR(driver.check(call.cuDeviceTotalMem(&facts.memory_bytes, device), "cuDeviceTotalMem"));
    const auto attribute = [&](CUdevice_attribute which, int& value) {
      return driver.check(call.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
    };
    PL_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, facts.major));
    PL_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, facts.minor));
    PL_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, facts.multiprocessors));
    devices.push_back(std::move(facts));
  }
  return devices;
}

}  // namespace paceline::cuda
