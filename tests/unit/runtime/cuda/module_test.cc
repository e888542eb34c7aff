#include "runtime/cuda/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/kernels/elementwise_params.h"
#include "runtime/cuda/kernels/images.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ModuleTest : public GpuTest {};

TEST_F(ModuleTest, AKernelRunsWithWhatItWasGiven) {
  const Module module = must(Module::load(context_, elementwise_image()));
  const auto scale = must(module.kernel<UnaryParams>("scale_f32"));
  const auto x = upload<float>({1, 2, 3, 4, 5});
  UnaryParams params{.x = x.data(), .y = x.data(), .factor = 2, .n = 5};
  ASSERT_TRUE(scale.launch(*stream_, {.columns = 1, .threads = 64}, params).ok());
  params.factor = 100;  // taken when it was launched
  EXPECT_EQ(download(x), (std::vector<float>{2, 4, 6, 8, 10}));
  EXPECT_EQ(fake().kernels_run(), 1U);
}

TEST_F(ModuleTest, InvalidImageIsRefused) {
  const std::vector<std::byte> zeros(64);
  const absl::Status status = Module::load(context_, zeros).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(std::string(status.message()),
              StartsWith("kernels for Fake H200: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE"));
}

TEST_F(ModuleTest, AKernelThatIsNotThereOrTakesSomethingElseIsRefused) {
  const Module module = must(Module::load(context_, elementwise_image()));
  EXPECT_THAT(std::string(module.kernel<UnaryParams>("nothing").status().message()),
              StartsWith("nothing: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"));
  const absl::Status other = module.kernel<BinaryParams>("relu_f32").status();
  EXPECT_TRUE(module.kernel<UnaryParams>("relu_f32").ok());
  const absl::Status byte = module.kernel<char>("relu_f32").status();
  EXPECT_TRUE(absl::IsInternal(byte));
  EXPECT_EQ(byte.message(), "kernel relu_f32 takes 32 bytes, and is given 1: its image is of another build");
}

TEST_F(ModuleTest, AShapeThatCannotBeLaunchedIsAnErrorAtOnce) {
  const Module module = must(Module::load(context_, elementwise_image()));
  const auto relu = must(module.kernel<UnaryParams>("relu_f32"));
  for (const LaunchShape shape : {LaunchShape{.threads = 0}, LaunchShape{.threads = 257},
                                  LaunchShape{.columns = 0}, LaunchShape{.rows = 65536}}) {
    EXPECT_THAT(std::string(relu.launch(*stream_, shape, {}).message()),
                StartsWith("relu_f32: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE"));
  }
}

TEST_F(ModuleTest, MemoryThatIsNotThereIsToldWithWhatIs) {
  fake().control().memory_bytes = 1000;
  const auto first = must(DeviceBuffer::create(context_, 600));
  const absl::Status status = DeviceBuffer::create(context_, 401).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), "GPU 0 (Fake H200) has no 401 bytes left: 400 bytes of 1000 bytes are free");
  fake().control().memory_bytes = std::size_t{8} << 20;
  EXPECT_EQ(DeviceBuffer::create(context_, std::size_t{9} << 20).status().message(),
            "GPU 0 (Fake H200) has no 9 MiB left: 7 MiB of 8 MiB are free");
  EXPECT_EQ(must(DeviceBuffer::create(context_, 0)).address(), nullptr);
  fake().control().fail = [](const std::string& call) {
    return call == "cuMemHostAlloc" ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  EXPECT_EQ(PinnedBuffer::create(context_, 4096).status().message(),
            "the host has no 4096 bytes to pin for GPU 0: see its memory and limits");
}

TEST_F(ModuleTest, AGpuThatIsNotThereIsRefused) {
  EXPECT_EQ(Context::open(must(Driver::open(binary_path(PACELINE_FAKE_CUDA))), 1).status().message(),
            "there is no GPU 1: this process may use 1");
  EXPECT_TRUE(absl::IsInvalidArgument(
      Context::open(must(Driver::open(binary_path(PACELINE_FAKE_CUDA))), -1).status()));
}

TEST_F(ModuleTest, ShapesGiveEachThreadAPieceOrFillTheGpu) {
  EXPECT_EQ(strided_shape(0, 256, 132), (LaunchShape{.columns = 1, .threads = 256}));
  EXPECT_EQ(strided_shape(256, 256, 132), (LaunchShape{.columns = 1, .threads = 256}));
  EXPECT_EQ(strided_shape(257, 256, 132), (LaunchShape{.columns = 2, .threads = 256}));
  EXPECT_EQ(strided_shape(std::size_t{1} << 40, 256, 132), (LaunchShape{.columns = 2112, .threads = 256}));
  EXPECT_EQ(strided_shape(1000, 256, 0).columns, 4U);
}

}  // namespace
}  // namespace paceline::cuda
