#include "runtime/cuda/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/assert_ok.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::cuda {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class DriverTest : public ::testing::Test {
 protected:
  DriverTest() { fake().reset(); }
  ~DriverTest() override { fake().reset(); }

  static fake_cuda::Control& control() { return fake().control(); }
  static absl::StatusOr<std::shared_ptr<const Driver>> open() {
    return Driver::open(binary_path(PACELINE_FAKE_CUDA));
  }
};

TEST_F(DriverTest, DevicesAreListedWithTheirFacts) {
  control().devices = 2;
  PL_ASSERT_OK(driver, open());
  EXPECT_EQ((*driver)->cuda_version(), 13000);
  PL_ASSERT_OK(devices, list_devices(**driver));
  ASSERT_THAT(*devices, SizeIs(2));
  const DeviceFacts& second = (*devices)[1];
  EXPECT_EQ(second.ordinal, 1);
  EXPECT_EQ(second.name, "Fake H200");
  EXPECT_EQ(second.uuid, "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
  EXPECT_EQ(second.pci_bus_id, "0000:01:00.0");
  EXPECT_EQ(second.major * 10 + second.minor, 90);
  EXPECT_EQ(second.multiprocessors, 132);
  EXPECT_EQ(second.memory_bytes, std::size_t{1} << 30);
}

TEST_F(DriverTest, WithoutOneThereIsNoGpu) {
  const auto driver = Driver::open("/nowhere/libcuda.so.1");
  EXPECT_TRUE(absl::IsNotFound(driver.status())) << driver.status();
  EXPECT_THAT(std::string(driver.status().message()),
              AllOf(StartsWith("no NVIDIA driver can be used"), HasSubstr("/nowhere/libcuda.so.1"),
                    EndsWith("; install driver 580 or newer")));
}

TEST_F(DriverTest, ALibraryThatIsNoneIsNoMissingOne) {
  const auto driver = Driver::open(source_path("tests/unit/runtime/cuda/driver_test.cc"));
  EXPECT_TRUE(absl::IsFailedPrecondition(driver.status())) << driver.status();
  EXPECT_THAT(std::string(driver.status().message()),
              HasSubstr(source_path("tests/unit/runtime/cuda/driver_test.cc")));
}

TEST_F(DriverTest, ALibraryWithoutItsCallsIsRefusedWithWhatIsNeeded) {
  const auto driver = Driver::open("libc.so.6");
  EXPECT_TRUE(absl::IsFailedPrecondition(driver.status())) << driver.status();
  EXPECT_THAT(std::string(driver.status().message()),
              AllOf(StartsWith("no NVIDIA driver can be used"), HasSubstr("has no cuDriverGetVersion"),
                    EndsWith("; install driver 580 or newer")));
}

TEST_F(DriverTest, AnOlderOneIsRefusedWithWhatIsNeeded) {
  control().version = 12080;
  const auto driver = open();
  EXPECT_TRUE(absl::IsFailedPrecondition(driver.status()));
  EXPECT_EQ(std::string(driver.status().message()),
            "the NVIDIA driver knows CUDA 12.8, and 13.0 is needed: install driver 580 or newer");
  control().version = 13010;
  EXPECT_TRUE(open().ok());
}

TEST_F(DriverTest, OneWithoutAGpuIsToldApartFromOneThatDoesNotStart) {
  control().init = CUDA_ERROR_NO_DEVICE;
  EXPECT_TRUE(absl::IsNotFound(open().status()));
  EXPECT_EQ(open().status().message(), "cuInit: CUDA_ERROR_NO_DEVICE (100)");
  control().init = CUDA_ERROR_UNKNOWN;
  EXPECT_TRUE(absl::IsUnavailable(open().status()));
  EXPECT_EQ(open().status().message(), "the NVIDIA driver does not start: cuInit: CUDA_ERROR_UNKNOWN (999)");
}

TEST_F(DriverTest, ErrorsHaveTheirKindsAndCudasWords) {
  PL_ASSERT_OK(driver, open());
  EXPECT_TRUE((*driver)->check(CUDA_SUCCESS, "cuMemAlloc").ok());
  const absl::Status memory = (*driver)->check(CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc");
  EXPECT_TRUE(absl::IsResourceExhausted(memory));
  EXPECT_EQ(memory.message(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  for (const CUresult lost : {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE,
                              CUDA_ERROR_CONTAINED, CUDA_ERROR_EXTERNAL_DEVICE})
    EXPECT_TRUE(absl::IsUnavailable((*driver)->check(lost, "cuStreamSynchronize"))) << lost;
  const absl::Status unknown = (*driver)->check(static_cast<CUresult>(998), "cuLaunchKernel");
  EXPECT_TRUE(absl::IsInternal(unknown));
  EXPECT_EQ(unknown.message(), "cuLaunchKernel: an unknown error (998)");
}

TEST_F(DriverTest, AFailingCallIsNamed) {
  PL_ASSERT_OK(driver, open());
  for (const char* call : {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetPCIBusId",
                           "cuDeviceGetUuid", "cuDeviceTotalMem", "cuDeviceGetAttribute"}) {
    control().fail = [call](const std::string& made) {
      return made.starts_with(call) && made.size() <= std::string_view(call).size() + 3 ? CUDA_ERROR_UNKNOWN
                                                                                        : CUDA_SUCCESS;
    };
    EXPECT_THAT(std::string(list_devices(**driver).status().message()),
                StartsWith(std::string(call) + ": CUDA_ERROR_UNKNOWN"))
        << call;
  }
}

}  // namespace
}  // namespace paceline::cuda
