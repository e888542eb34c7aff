#include "runtime/bin/step_evidence.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

using std::chrono::milliseconds;

class StepEvidenceTest : public ::testing::Test {
 protected:
  std::string told() {
    v1::Heartbeat heartbeat;
    evidence_.add_to(heartbeat);
    return heartbeat.ShortDebugString();
  }
  void have(std::int64_t steps, int passes_ms, int update_ms) {
    *sums_->lock() = {steps, {milliseconds(passes_ms), milliseconds(update_ms)}, 0};
  }

  const std::shared_ptr<tensor::DeviceTimer::Sums> sums_ = std::make_shared<tensor::DeviceTimer::Sums>();
  StepEvidence evidence_{"H200", sums_};
};

TEST_F(StepEvidenceTest, TellsTheMeanOfTheStepsSinceItToldOfOthers) {
  EXPECT_EQ(told(), "gpu { name: \"H200\" }") << "nothing is measured yet";
  have(2, 30, 3);
  EXPECT_EQ(told(), "gpu { name: \"H200\" compute_ms: 15 update_ms: 1.5 }");
  EXPECT_EQ(told(), "gpu { name: \"H200\" compute_ms: 15 update_ms: 1.5 }") << "no step since";
  have(6, 130, 5);
  EXPECT_EQ(told(), "gpu { name: \"H200\" compute_ms: 25 update_ms: 0.5 }");
}

TEST_F(StepEvidenceTest, HostsUpdateHasNoDeviceTime) {
  have(2, 30, 0);
  EXPECT_EQ(told(), "gpu { name: \"H200\" compute_ms: 15 }");
}

TEST_F(StepEvidenceTest, OtherGpuFieldsStay) {
  have(1, 7, 1);
  v1::Heartbeat heartbeat;
  heartbeat.mutable_gpu()->set_utilization(0.5);
  evidence_.add_to(heartbeat);
  EXPECT_EQ(heartbeat.gpu().utilization(), 0.5);
  EXPECT_EQ(heartbeat.gpu().compute_ms(), 7);
}

}  // namespace
}  // namespace paceline
