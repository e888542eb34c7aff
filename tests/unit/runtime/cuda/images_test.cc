#include "runtime/cuda/kernels/images.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace paceline::cuda {
namespace {

// The container that nvcc -fatbin makes, and that cuModuleLoadData takes: fatbinary_section.h's magic number.
TEST(Images, AreWhatNvccMakesWithTheKernelsInIt) {
  const auto image = elementwise_image();
  ASSERT_GT(image.size(), 1000U);
  std::uint32_t magic = 0;
  std::memcpy(&magic, image.data(), sizeof magic);
  EXPECT_EQ(magic, 0xba55ed50U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(image.data()) % 16, 0U);
  const std::string_view bytes(reinterpret_cast<const char*>(image.data()), image.size());
  EXPECT_NE(bytes.find("bias_gelu_bf16"), std::string_view::npos);
}

}  // namespace
}  // namespace paceline::cuda
