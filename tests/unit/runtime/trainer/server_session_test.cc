#include "runtime/trainer/server_session.h"

#include <gtest/gtest.h>

#include "runtime/trainer/limits.h"

namespace paceline::trainer {
namespace {

using Servers = v1::ParameterServerSpec;

constexpr Duration kTimeout = std::chrono::seconds(20);
constexpr int kWorkers = 4;

v1::TrainingSpec spec_of(Servers::Synchronization mode, int gradients_per_step = kWorkers) {
  v1::TrainingSpec spec;
  Servers& servers = *spec.mutable_parameter_server();
  servers.set_synchronization(mode);
  servers.set_workers(kWorkers);
  servers.set_gradients_per_step(gradients_per_step);
  servers.set_timeout_ms(20'000);
  return spec;
}

StepPlan evaluates_every(Step every) {
  StepPlan plan;
  plan.total_steps = 1000;
  plan.evaluates = true;
  plan.evaluate_every = every;
  plan.servers = true;
  return plan;
}

TEST(TurnPatience, SynchronousModeWaitsLongerAroundAnEvaluation) {
  const v1::TrainingSpec spec = spec_of(Servers::SYNCHRONOUS);
  const StepPlan plan = evaluates_every(100);
  for (const Step step : {0, 50, 97, 103, 150}) {
    EXPECT_EQ(turn_patience(spec, plan, 1, step), kTimeout) << "step " << step;
  }
  for (const Step step : {99, 100, 101, 200}) {
    EXPECT_EQ(turn_patience(spec, plan, 1, step), kTimeout + kSaveLimit) << "step " << step;
  }
}

// The chief may have begun to evaluate many steps ago: its unit is missing all the same.
TEST(TurnPatience, ElsewhereItIsLongerAtEveryStep) {
  const StepPlan plan = evaluates_every(100);
  for (const v1::TrainingSpec& spec : {spec_of(Servers::ASYNCHRONOUS), spec_of(Servers::BOUNDED_STALENESS),
                                       spec_of(Servers::SYNCHRONOUS, kWorkers - 1)}) {
    for (const Step step : {0, 50, 100, 150}) {
      EXPECT_EQ(turn_patience(spec, plan, 3, step), kTimeout + kSaveLimit)
          << "mode " << spec.parameter_server().synchronization() << ", step " << step;
    }
  }
}

TEST(TurnPatience, WorkerZeroDoesNotWaitForItself) {
  for (const auto mode : {Servers::SYNCHRONOUS, Servers::ASYNCHRONOUS, Servers::BOUNDED_STALENESS}) {
    EXPECT_EQ(turn_patience(spec_of(mode), evaluates_every(100), 0, 100), kTimeout);
  }
}

TEST(TurnPatience, WithoutEvaluationsInTheMiddleItIsTheTimeout) {
  StepPlan never = evaluates_every(100);
  never.evaluates = false;
  for (const auto mode : {Servers::SYNCHRONOUS, Servers::ASYNCHRONOUS, Servers::BOUNDED_STALENESS}) {
    EXPECT_EQ(turn_patience(spec_of(mode), never, 1, 100), kTimeout);
    EXPECT_EQ(turn_patience(spec_of(mode), evaluates_every(0), 1, 100), kTimeout);
  }
}

}  // namespace
}  // namespace paceline::trainer
