#include "base/cuda_build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

TEST(CudaBuild, AGpuIsThereWhereItsFileIs) {
  const TemporaryFolder folder;
  EXPECT_FALSE(has_nvidia_gpu(folder.path()));
  EXPECT_FALSE(has_nvidia_gpu(folder.path() + "/none"));
  for (const char* other : {"nvidiactl", "nvidia-uvm", "nvidia64", "nvidia"}) {  // a driver without a GPU
    std::ofstream(folder.path() + "/" + other) << "";
    EXPECT_FALSE(has_nvidia_gpu(folder.path())) << other;
  }
  std::ofstream(folder.path() + "/nvidia63") << "";  // a container may have any
  EXPECT_TRUE(has_nvidia_gpu(folder.path()));
}

TEST(CudaBuild, AGpuThatLiesIdleIsToldWithWhatHelps) {
  EXPECT_TRUE(absl::IsNotFound(without_cuda(false)));
  const absl::Status idle = without_cuda(true);
  EXPECT_TRUE(absl::IsFailedPrecondition(idle));
  for (const char* words : {"built without CUDA", "scripts/setup --cuda", "PACELINE_CUDA=ON", "runtime-cuda"})
    EXPECT_THAT(std::string(idle.message()), HasSubstr(words));
}

}  // namespace
}  // namespace paceline
