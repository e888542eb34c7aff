// What is the same on every machine; the rest is gpu_runs_test.py's.

#include "runtime/device/choose_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace paceline::device {
namespace {

using ::testing::StartsWith;

TEST(ChooseDevice, TheProcessorsWhereTheyAreAskedFor) {
  for (const auto& [threads, words] :
       {std::pair{1, "on processors with 1 thread"}, {3, "on processors with 3 threads"}}) {
    const auto chosen = choose_device({DeviceChoice::Kind::kCpu, std::nullopt}, 5, threads);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_NE(chosen->device, nullptr);
    EXPECT_EQ(chosen->words, words);
    EXPECT_EQ(chosen->warning + chosen->gpu + chosen->gpu_uuid, "");
  }
}

// Else a failed member's last words would speak of GPUs.
TEST(ChooseDevice, MissingGpuIsNoPartOfTheWords) {
  const auto chosen = choose_device({}, 0, 1);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  const bool missing = chosen->gpu.empty();
  EXPECT_EQ(chosen->words == "on processors with 1 thread", missing);
  EXPECT_EQ(chosen->no_gpu + chosen->warning != "", missing);
}

TEST(ChooseDevice, AGpuThatIsAskedForMustBeThere) {
  const auto chosen = choose_device({DeviceChoice::Kind::kCuda, 63}, 0, 1);  // no machine has so many
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(chosen.status().message()), StartsWith("PACELINE_DEVICE asks for a GPU: "));
}

}  // namespace
}  // namespace paceline::device
