#include "runtime/trainer/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/trainer/controls.h"
#include "tests/support/step_model.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;

TEST(MakePlan, TurnsEpochsIntoSteps) {
  v1::TrainingSpec spec = step_spec(0, 64);
  spec.set_epochs(2);
  spec.mutable_evaluation()->set_every_epochs(0.5);
  const auto plan = make_plan(spec, 1000, 10);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->total_steps, 32);    // 2000 / 64, rounded up
  EXPECT_EQ(plan->evaluate_every, 8);  // 500 / 64, rounded
  EXPECT_TRUE(plan->evaluates);
}

TEST(MakePlan, TakesStepsTargetsAndCheckpoints) {
  v1::TrainingSpec spec = step_spec(70, 64);
  spec.mutable_evaluation()->set_every_steps(7);
  spec.mutable_target()->set_metric("loss");
  spec.mutable_target()->set_value(0.5);
  spec.mutable_checkpoint()->set_directory("/somewhere");
  spec.mutable_checkpoint()->set_every_seconds(1.5);
  const auto plan = make_plan(spec, 1000, 10);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->total_steps, 70);
  EXPECT_EQ(plan->evaluate_every, 7);
  EXPECT_EQ(plan->target->metric, TargetMetric::kLoss);
  spec.mutable_target()->set_metric("auc");
  spec.mutable_parameter_server();
  EXPECT_EQ(make_plan(spec, 1000, 10)->target->metric, TargetMetric::kAuc);
  EXPECT_TRUE(plan->saves);
  EXPECT_EQ(plan->checkpoint_time, std::chrono::milliseconds(1500));
}

TEST(SamplesOfSteps, AreThoseThatCount) {
  v1::TrainingSpec spec = step_spec(70, 64);
  EXPECT_EQ(samples_of_steps(spec, 10), 640);
  v1::ParameterServerSpec& servers = *spec.mutable_parameter_server();
  servers.set_units_per_step(3);
  servers.set_gradients_per_step(3);
  EXPECT_EQ(samples_of_steps(spec, 10), 640) << "all, or all but the backups";
  servers.set_gradients_per_step(2);
  EXPECT_EQ(samples_of_steps(spec, 10), 426) << "two thirds";
  EXPECT_EQ(samples_of_steps(spec, 0), 0);
  EXPECT_EQ(samples_of_steps(spec, std::int64_t{3} << 50), std::int64_t{128} << 50) << "nothing overflows";
}

TEST(MakePlan, NamesTheFieldThatIsWrong) {
  struct Case {
    std::function<void(v1::TrainingSpec&)> change;
    std::int64_t train, test;
    const char* named;
  };
  for (const Case& c : std::vector<Case>{
           {[](auto& s) { s.set_steps(0); }, 10, 0, "steps"},
           {[](auto&) {}, 0, 0, "data.train"},
           {[](auto& s) { s.set_global_batch_size(0); }, 10, 0, "globalBatchSize"},
           {[](auto& s) { s.set_global_batch_size(11); }, 10, 0, "allowed: at most 10"},
           {[](auto& s) { s.mutable_target()->set_metric("accuracy"); }, 10, 0, "held-out"},
           {[](auto& s) {
              s.mutable_target()->set_metric("accuracy");
              s.mutable_data()->set_format(v1::DataSpec::CUSTOM);
              s.mutable_data()->mutable_custom()->set_name("moons");
            },
            10, 0, "custom data set 'moons' returns no test set"},
           {[](auto& s) { s.mutable_target()->set_metric("beauty"); }, 10, 5, "beauty"},
           {[](auto& s) { s.mutable_target()->set_metric("auc"); }, 10, 5, "strategy.type: ParameterServer"},
       }) {
    v1::TrainingSpec spec = step_spec(5, 8);
    c.change(spec);
    const auto plan = make_plan(spec, c.train, c.test);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(c.named));
  }
}

TEST(ControlsBehindTheGradient, SumUp) {
  std::vector<float> one(kControls, 9), other(kControls, 9);
  constexpr std::int64_t kMost = 1 << 24;
  write_controls({1234.125, {.stop = true}, 1}, one);
  write_controls({0.0625, {.save = true}, kMost - 2}, other);
  for (std::size_t i = 0; i < kControls; ++i) one[i] += other[i];
  const Controls sums = read_controls(one);
  EXPECT_DOUBLE_EQ(sums.loss_sum, 1234.1875);
  EXPECT_TRUE(sums.wishes.stop);
  EXPECT_FALSE(sums.wishes.drain);
  EXPECT_TRUE(sums.wishes.save);
  EXPECT_EQ(sums.left_out, kMost - 1);
}

}  // namespace
}  // namespace paceline::trainer
