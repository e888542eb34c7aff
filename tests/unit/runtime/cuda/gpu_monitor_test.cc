#include "runtime/cuda/gpu_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "runtime/cuda/shared_object.h"
#include "tests/support/assert_ok.h"
#include "tests/support/fake_nvml/fake_nvml.h"
#include "tests/support/paths.h"

namespace paceline::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GpuMonitorTest : public ::testing::Test {
 protected:
  GpuMonitorTest() { library().reset(); }
  ~GpuMonitorTest() override {
    EXPECT_EQ(library().begun(), 0);
    EXPECT_EQ(library().event_sets(), 0);
    library().reset();
  }

  static fake_nvml::FakeNvml& library() {
    static const auto get = [] {
      const std::array names{binary_path(PACELINE_FAKE_NVML)};
      const auto library = SharedObject::open(names);
      EXPECT_TRUE(library.ok()) << library.status();
      return reinterpret_cast<fake_nvml::Get>(*library->find(fake_nvml::kGet));
    }();
    return *get();
  }
  static fake_nvml::Control& control() { return library().control(); }
  static absl::StatusOr<std::unique_ptr<GpuMonitor>> open() {
    return GpuMonitor::open(control().uuid, binary_path(PACELINE_FAKE_NVML));
  }
};

TEST_F(GpuMonitorTest, EverythingIsRead) {
  control().throttle_reasons = nvmlClocksEventReasonSwPowerCap;
  PL_ASSERT_OK(monitor, open());
  const GpuReading reading = (*monitor)->read();
  EXPECT_TRUE(reading.trouble.ok()) << reading.trouble;
  EXPECT_EQ(reading.gpu.utilization, 0.93);
  EXPECT_EQ(reading.gpu.memory_utilization, 0.41);
  EXPECT_EQ(reading.gpu.memory_used_mib, 61'234);
  EXPECT_EQ(reading.gpu.memory_total_mib, 143'771);
  EXPECT_EQ(reading.gpu.sm_clock_mhz, 1755);
  EXPECT_EQ(reading.gpu.most_sm_clock_mhz, 1980);
  EXPECT_EQ(reading.gpu.memory_clock_mhz, 3201);
  EXPECT_EQ(reading.gpu.most_memory_clock_mhz, 3202);
  EXPECT_EQ(reading.gpu.temperature_celsius, 54);
  EXPECT_EQ(reading.gpu.power_watts, 612.345);
  EXPECT_EQ(reading.gpu.power_limit_watts, 700);
  EXPECT_EQ(reading.gpu.corrected_ecc_errors, 7);
  EXPECT_EQ(reading.gpu.uncorrected_ecc_errors, 0);
  EXPECT_EQ(reading.gpu.pcie_replays, 2);
  EXPECT_EQ(reading.gpu.xids, 0);
  EXPECT_THAT(reading.gpu.slowdowns, ElementsAre("power cap"));
}

TEST_F(GpuMonitorTest, XidsAreCounted) {
  PL_ASSERT_OK(monitor, open());
  control().xids = {31, 79};
  EXPECT_EQ((*monitor)->read().gpu.xids, 2);
  control().xids = {48};
  const GpuReading reading = (*monitor)->read();
  EXPECT_EQ(reading.gpu.xids, 3);
  EXPECT_EQ(reading.gpu.last_xid, 48);
}

// As CUDA names it.
TEST_F(GpuMonitorTest, AMigInstanceHasItsMemoryAndTheRestIsOfTheWholeGpu) {
  control().mig_uuid = "MIG-5c7b2a9e-1111-2222-3333-444455556666";
  control().results["nvmlDeviceGetUtilizationRates"] = NVML_ERROR_NOT_SUPPORTED;
  PL_ASSERT_OK(monitor,
               GpuMonitor::open("GPU-5c7b2a9e-1111-2222-3333-444455556666", binary_path(PACELINE_FAKE_NVML)));
  for (const unsigned instance : {3U, 4U, 0xffffffffU}) {  // its own, another's, and the whole GPU's
    control().xids = {31};
    control().xid_instance = instance;
    EXPECT_TRUE((*monitor)->read().trouble.ok());
  }
  const GpuReading reading = (*monitor)->read();
  EXPECT_TRUE(reading.trouble.ok()) << reading.trouble;
  EXPECT_EQ(reading.gpu.memory_total_mib, 19'968);
  EXPECT_EQ(reading.gpu.memory_used_mib, 4'992);
  EXPECT_FALSE(reading.gpu.utilization.has_value());
  EXPECT_EQ(reading.gpu.sm_clock_mhz, 1755);
  EXPECT_EQ(reading.gpu.temperature_celsius, 54);
  EXPECT_EQ(reading.gpu.power_watts, 612.345);
  EXPECT_EQ(reading.gpu.pcie_replays, 2);
  EXPECT_EQ(reading.gpu.xids, 2);
  // No instance, nor a GPU, of that number.
  EXPECT_TRUE(absl::IsNotFound(GpuMonitor::open("GPU-1", binary_path(PACELINE_FAKE_NVML)).status()));
}

TEST_F(GpuMonitorTest, UntoldReadingIsEmpty) {
  for (const char* const call :
       {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetTemperatureV", "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetPcieReplayCounter"})
    control().results[call] = NVML_ERROR_NOT_SUPPORTED;
  control().results["nvmlDeviceRegisterEvents"] = NVML_ERROR_NO_PERMISSION;
  control().xids = {31};
  PL_ASSERT_OK(monitor, open());
  const GpuReading reading = (*monitor)->read();
  EXPECT_TRUE(reading.trouble.ok()) << reading.trouble;
  EXPECT_EQ(reading.gpu, GpuTelemetry());
}

TEST_F(GpuMonitorTest, OfALostGpuThereIsWhatItToldAndItsXids) {
  PL_ASSERT_OK(monitor, open());
  control().results["nvmlDeviceGetPowerUsage"] = NVML_ERROR_GPU_IS_LOST;
  control().xids = {79};
  const GpuReading reading = (*monitor)->read();
  EXPECT_TRUE(absl::IsUnavailable(reading.trouble));
  EXPECT_EQ(reading.trouble.message(), "nvmlDeviceGetPowerUsage: GPU is lost (15)");
  EXPECT_TRUE(reading.gpu.utilization.has_value());
  EXPECT_EQ(reading.gpu.last_xid, 79);
}

TEST_F(GpuMonitorTest, AValueThatFailsIsLeftOutAlone) {
  PL_ASSERT_OK(monitor, open());
  for (const nvmlReturn_t failure :
       {NVML_ERROR_UNKNOWN, NVML_ERROR_FUNCTION_NOT_FOUND, NVML_ERROR_ARGUMENT_VERSION_MISMATCH}) {
    control().results["nvmlDeviceGetTemperatureV"] = failure;
    const GpuReading reading = (*monitor)->read();
    EXPECT_TRUE(reading.trouble.ok()) << reading.trouble;
    EXPECT_FALSE(reading.gpu.temperature_celsius.has_value());
    EXPECT_TRUE(reading.gpu.power_watts.has_value());
  }
  control().results.erase("nvmlDeviceGetTemperatureV");
  EXPECT_TRUE((*monitor)->read().gpu.temperature_celsius.has_value());
}

TEST_F(GpuMonitorTest, WithoutLibraryDriverOrGpuThereIsNone) {
  EXPECT_TRUE(absl::IsNotFound(GpuMonitor::open("GPU-1", "/nowhere/libnvidia-ml.so.1").status()));
  EXPECT_TRUE(absl::IsNotFound(GpuMonitor::open("GPU-1", binary_path(PACELINE_FAKE_NVML)).status()));
  EXPECT_THAT(std::string(GpuMonitor::open("GPU-1", source_path("tests/unit/runtime/cuda/driver_test.cc"))
                              .status()
                              .message()),
              HasSubstr(source_path("tests/unit/runtime/cuda/driver_test.cc")));
  control().results["nvmlInit_v2"] = NVML_ERROR_DRIVER_NOT_LOADED;
  EXPECT_TRUE(absl::IsUnavailable(open().status()));
}

TEST(Slowdowns, AreThoseThatMatter) {
  EXPECT_THAT(slowdowns(0), IsEmpty());
  EXPECT_THAT(slowdowns(nvmlClocksEventReasonGpuIdle | nvmlClocksEventReasonApplicationsClocksSetting),
              IsEmpty());
  EXPECT_THAT(
      slowdowns(nvmlClocksThrottleReasonHwSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown |
                nvmlClocksEventReasonSwThermalSlowdown | nvmlClocksThrottleReasonHwPowerBrakeSlowdown),
      ElementsAre("thermal (software)", "thermal (hardware)", "power brake", "hardware slowdown"));
}

}  // namespace
}  // namespace paceline::cuda
