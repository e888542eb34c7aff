// What is said where memory of the host can't be pinned.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "runtime/tensor/gpu/gpu_device.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::tensor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GpuPinsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    PL_EMULATED_ONLY();
    cuda::fake().reset();
    device_ = cuda::must(open_gpu_device(
        {.driver = cuda::test_driver(),
         .cublaslt = binary_path(PACELINE_FAKE_CUBLASLT),
         .not_pinned = [this](const absl::Status& why) { told_.emplace_back(why.message()); }}));
  }
  void TearDown() override {
    device_.reset();
    if (!cuda::on_real_gpu()) cuda::fake().reset();
  }
  std::shared_ptr<const void> pin(std::vector<float>& memory) {
    return device_->pin(std::as_writable_bytes(std::span(memory)));
  }
  static void pins_fail(CUresult how) {
    cuda::fake().control().fail = [how](const std::string& call) {
      return call == "cuMemHostRegister_v2" ? how : CUDA_SUCCESS;
    };
  }

  std::vector<float> one_ = std::vector<float>(1000), other_ = one_;
  std::vector<std::string> told_;
  std::unique_ptr<Device> device_;
};

TEST_F(GpuPinsTest, OneThatFailsIsToldOnceAndWhy) {
  pins_fail(CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(pin(one_), nullptr);
  EXPECT_EQ(pin(other_), nullptr);
  EXPECT_THAT(told_, ElementsAre(AllOf(HasSubstr("4000 bytes"), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"))));
  cuda::fake().control().fail = nullptr;
  EXPECT_NE(pin(one_), nullptr);
}

TEST_F(GpuPinsTest, MemoryPinnedElsewhereIsAccepted) {
  pins_fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(pin(one_), nullptr);
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace paceline::tensor
