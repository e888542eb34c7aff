#include "runtime/member/kernel_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace paceline::member {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class KernelWatchTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  v1::Heartbeat beat(KernelWatch& watch, Duration at) {
    v1::Heartbeat heartbeat;
    watch.add_to(heartbeat, TimePoint(at));
    return heartbeat;
  }

  TemporaryFolder folder_;
};

TEST_F(KernelWatchTest, RatesAreOfASecondOrMore) {
  write("/proc/self/cgroup", "1:cpu:/pod\n");
  write("/sys/fs/cgroup/cpu/pod/cpu.stat", "nr_throttled 1\nthrottled_time 100000000\n");
  write("/proc/self/task/1/schedstat", "1000000000 0 1\n");
  write("/proc/self/task/2/schedstat", "1000000000 0 1\n");
  KernelWatch watch(folder_.path());
  EXPECT_FALSE(beat(watch, seconds(1)).has_kernel());
  write("/sys/fs/cgroup/cpu/pod/cpu.stat", "nr_throttled 9\nthrottled_time 600000000\n");
  write("/proc/self/task/2/schedstat", "1500000000 500000000 1\n");
  EXPECT_FALSE(beat(watch, milliseconds(1900)).has_kernel());
  const v1::Heartbeat heartbeat = beat(watch, seconds(2));
  ASSERT_TRUE(heartbeat.has_kernel());
  EXPECT_DOUBLE_EQ(heartbeat.kernel().throttled(), 0.5);
  EXPECT_DOUBLE_EQ(heartbeat.kernel().cpu(), 0.5);
  EXPECT_DOUBLE_EQ(heartbeat.kernel().run_delay(), 0.5);
  EXPECT_FALSE(heartbeat.kernel().has_cpu_pressure());
  EXPECT_TRUE(beat(watch, milliseconds(2500)).has_kernel());
}

TEST_F(KernelWatchTest, TimersAreAsLateAsTheyRangBetweenTwoReadings) {
  KernelWatch watch(folder_.path()), of_another(folder_.path(), 77);
  watch.rang(seconds(9));
  EXPECT_FALSE(beat(watch, seconds(1)).has_kernel());
  EXPECT_FALSE(beat(of_another, seconds(1)).has_kernel());
  for (const int late : {10, 30}) {
    watch.rang(milliseconds(late));
    of_another.rang(milliseconds(late));
  }
  EXPECT_NEAR(beat(watch, seconds(2)).kernel().timer_delay_ms(), 20, 1e-6);
  EXPECT_FALSE(beat(of_another, seconds(2)).kernel().has_timer_delay_ms()) << "they are not that process'";
  EXPECT_FALSE(beat(watch, seconds(3)).kernel().has_timer_delay_ms()) << "none rang";
}

TEST_F(KernelWatchTest, PressureIsTheContainersWhereItHasItsOwn) {
  KernelWatch watch(folder_.path());
  write("/proc/pressure/io", "some avg10=0 total=0\n");
  write("/proc/pressure/memory", "some avg10=0 total=0\n");
  write("/sys/fs/cgroup/io.pressure", "some avg10=0 total=0\n");
  beat(watch, seconds(1));
  write("/proc/pressure/io", "some avg10=0 total=900000\n");
  write("/proc/pressure/memory", "some avg10=0 total=300000\n");
  write("/sys/fs/cgroup/io.pressure", "some avg10=0 total=200000\n");
  const v1::Heartbeat heartbeat = beat(watch, seconds(2));
  EXPECT_DOUBLE_EQ(heartbeat.kernel().io_pressure(), 0.2);
  EXPECT_DOUBLE_EQ(heartbeat.kernel().memory_pressure(), 0.3);
}

TEST_F(KernelWatchTest, AnotherProcessIsRead) {
  write("/proc/77/task/77/schedstat", "1000000000 0 1\n");
  write("/proc/self/task/1/schedstat", "1000000000 0 1\n");
  KernelWatch watch(folder_.path(), 77);
  beat(watch, seconds(1));
  write("/proc/77/task/77/schedstat", "1250000000 0 1\n");
  EXPECT_DOUBLE_EQ(beat(watch, seconds(2)).kernel().cpu(), 0.25);
}

TEST_F(KernelWatchTest, NothingIsToldOfNoProcess) {
  KernelWatch watch("", -1);
  beat(watch, seconds(1));
  EXPECT_FALSE(beat(watch, seconds(2)).has_kernel());
}

TEST_F(KernelWatchTest, ThisProcessIsRead) {
  KernelWatch watch;
  beat(watch, seconds(1));
  const v1::Heartbeat heartbeat = beat(watch, seconds(2));
  ASSERT_TRUE(heartbeat.has_kernel());
  EXPECT_TRUE(heartbeat.kernel().has_major_faults());
}

}  // namespace
}  // namespace paceline::member
