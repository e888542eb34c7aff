#include "runtime/bin/gpu_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace paceline {
namespace {

using cuda::GpuReading;

// Says what the test has put into it, one after the other, and the last for ever.
class FakeMonitor final : public cuda::GpuMonitor {
 public:
  struct Script {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<GpuReading> readings;
    int asked = 0;

    // Until it was asked so often.
    bool wait_for(int times) {
      std::unique_lock lock(mutex);
      return changed.wait_for(lock, std::chrono::seconds(60), [&] { return asked >= times; });
    }
  };
  explicit FakeMonitor(Script& script) : script_(script) {}
  GpuReading read() override {
    const std::lock_guard lock(script_.mutex);
    ++script_.asked;
    script_.changed.notify_all();
    auto reading = script_.readings.front();
    if (script_.readings.size() > 1) script_.readings.pop_front();
    return reading;
  }

 private:
  Script& script_;
};

GpuReading reading(double utilization) {
  GpuReading reading;
  reading.utilization = utilization;
  return reading;
}

TEST(GpuEvidence, AllThatAGpuSaysGoesIntoTheHeartbeat) {
  GpuReading all;
  all.utilization = 0.5;
  all.memory_utilization = 0.25;
  all.memory_used_bytes = (11 << 20) + 1;
  all.memory_total_bytes = 12 << 20;
  all.most_memory_clock_mhz = 13;
  all.sm_clock_mhz = 1;
  all.most_sm_clock_mhz = 2;
  all.memory_clock_mhz = 3;
  all.temperature_celsius = -4;
  all.power_watts = 5.5;
  all.power_limit_watts = 6.5;
  all.throttle_reasons = 4;  // nvmlClocksEventReasonSwPowerCap
  all.corrected_ecc_errors = 7;
  all.uncorrected_ecc_errors = 0;
  all.pcie_replays = 8;
  all.xids = 9;
  all.last_xid = 10;
  const v1::GpuStats stats = to_wire("H200", all);
  EXPECT_EQ(
      stats.ShortDebugString(),
      "name: \"H200\" utilization: 0.5 memory_utilization: 0.25 sm_clock_mhz: 1 most_sm_clock_mhz: 2 "
      "memory_clock_mhz: 3 temperature_celsius: -4 power_watts: 5.5 power_limit_watts: 6.5 slowdowns: "
      "\"power cap\" corrected_ecc_errors: 7 uncorrected_ecc_errors: 0 pcie_replays: 8 xids: 9 last_xid: "
      "10 memory_used_mib: 11 memory_total_mib: 12 most_memory_clock_mhz: 13");
  EXPECT_EQ(to_wire("H200", {}).ShortDebugString(), "name: \"H200\"") << "what is not told is absent";
}

TEST(GpuEvidence, ReadsAgainAndAgain) {
  FakeMonitor::Script script;
  script.readings = {reading(0.25), reading(0.5)};
  GpuEvidence evidence("H200", std::make_unique<FakeMonitor>(script), Logger::none(),
                       std::chrono::nanoseconds(1));
  ASSERT_TRUE(script.wait_for(4));  // the third is there when the fourth is asked for
  v1::Heartbeat heartbeat;
  evidence.tell(heartbeat);
  EXPECT_EQ(heartbeat.gpu().name(), "H200");
  EXPECT_EQ(heartbeat.gpu().utilization(), 0.5);
}

TEST(GpuEvidence, TheFirstReadingIsThereAtOnceAndTheEndIsNotWaitedFor) {
  FakeMonitor::Script script;
  script.readings = {reading(0.25)};
  GpuEvidence evidence("H200", std::make_unique<FakeMonitor>(script), Logger::none(), std::chrono::hours(1));
  v1::Heartbeat heartbeat;
  evidence.tell(heartbeat);
  EXPECT_EQ(heartbeat.gpu().utilization(), 0.25);
}

TEST(GpuEvidence, AGpuThatIsLostIsAskedAgainAndItsXidsAreTold) {
  FakeMonitor::Script script;
  GpuReading lost;
  lost.xids = 1;
  lost.last_xid = 79;
  lost.trouble = absl::UnavailableError("GPU is lost");
  script.readings = {reading(0.25), lost, lost, reading(0.5), lost};
  ::testing::internal::CaptureStderr();
  v1::Heartbeat heartbeat;
  {
    GpuEvidence evidence("H200", std::make_unique<FakeMonitor>(script),
                         Logger::to_stderr("worker-0", LogLevel::kWarning), std::chrono::nanoseconds(1));
    EXPECT_TRUE(script.wait_for(8));
    evidence.tell(heartbeat);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(heartbeat.gpu().ShortDebugString(), "name: \"H200\" xids: 1 last_xid: 79");
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << "once for each time that it was lost: " << log;
  EXPECT_THAT(log, ::testing::HasSubstr("GPU is lost"));
}

}  // namespace
}  // namespace paceline
