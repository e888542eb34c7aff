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
  reading.gpu.utilization = utilization;
  return reading;
}

TEST(GpuEvidence, ReadsAgainAndAgain) {
  FakeMonitor::Script script;
  script.readings = {reading(0.25), reading(0.5)};
  GpuEvidence evidence("H200", std::make_unique<FakeMonitor>(script), Logger::none(),
                       std::chrono::nanoseconds(1));
  ASSERT_TRUE(script.wait_for(4));  // the third is there when the fourth is asked for
  v1::Heartbeat heartbeat;
  evidence.add_to(heartbeat);
  EXPECT_EQ(heartbeat.gpu().name(), "H200");
  EXPECT_EQ(heartbeat.gpu().utilization(), 0.5);
}

TEST(GpuEvidence, TheFirstReadingIsThereAtOnceAndTheEndIsNotWaitedFor) {
  FakeMonitor::Script script;
  script.readings = {reading(0.25)};
  GpuEvidence evidence("H200", std::make_unique<FakeMonitor>(script), Logger::none(), std::chrono::hours(1));
  v1::Heartbeat heartbeat;
  evidence.add_to(heartbeat);
  EXPECT_EQ(heartbeat.gpu().utilization(), 0.25);
}

TEST(GpuEvidence, AGpuThatIsLostIsAskedAgainAndItsXidsAreTold) {
  FakeMonitor::Script script;
  GpuReading lost;
  lost.gpu.xids = 1;
  lost.gpu.last_xid = 79;
  lost.trouble = absl::UnavailableError("GPU is lost");
  script.readings = {reading(0.25), lost, lost, reading(0.5), lost};
  ::testing::internal::CaptureStderr();
  v1::Heartbeat heartbeat;
  {
    GpuEvidence evidence("H200", std::make_unique<FakeMonitor>(script),
                         Logger::to_stderr("worker-0", LogLevel::kWarning), std::chrono::nanoseconds(1));
    EXPECT_TRUE(script.wait_for(8));
    evidence.add_to(heartbeat);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(heartbeat.gpu().ShortDebugString(), "name: \"H200\" xids: 1 last_xid: 79");
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << "once for each time that it was lost: " << log;
  EXPECT_THAT(log, ::testing::HasSubstr("GPU is lost"));
}

}  // namespace
}  // namespace paceline
