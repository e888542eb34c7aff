// The digits of the examples in virtual time.

#include "runtime/simulation/virtual_training.h"
#include "tests/support/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::simulation {
namespace {

using ::testing::HasSubstr;

constexpr DelayModel kDelays{.log_mean = 3, .log_deviation = 0.3};

v1::TrainingSpec digits(Step steps) {
  v1::TrainingSpec spec;
  spec.mutable_model()->mutable_mlp()->add_hidden(32);
  spec.mutable_model()->mutable_mlp()->set_classes(10);
  v1::DataSpec& data = *spec.mutable_data();
  data.set_format(v1::DataSpec::CSV);
  data.mutable_train()->add_inputs(source_path("examples/data/digits.csv.gz"));
  data.set_test_fraction(0.2);
  data.set_label_column(-1);
  data.mutable_normalization()->set_scale(0.0625);
  data.mutable_normalization()->set_deviation(1);
  spec.mutable_optimizer()->set_learning_rate(0.1);
  spec.mutable_optimizer()->set_momentum(0.9);
  spec.set_global_batch_size(48);
  spec.set_steps(steps);
  spec.set_seed(1);
  return spec;
}

std::unique_ptr<VirtualTraining> open(const v1::TrainingSpec& spec) {
  auto training = VirtualTraining::open(spec);
  EXPECT_TRUE(training.ok()) << training.status();
  return *std::move(training);
}

std::vector<double> losses(const TrainingResult& result) {
  std::vector<double> values;
  for (const Evaluation& evaluation : result.evaluations) values.push_back(evaluation.loss);
  return values;
}

TEST(VirtualTrainingTest, LearnsTheDigitsInEveryMode) {
  v1::TrainingSpec spec = digits(600);
  spec.mutable_optimizer()->set_momentum(0.5);
  spec.mutable_target()->set_metric("accuracy");
  spec.mutable_target()->set_value(0.93);
  const auto training = open(spec);
  for (const Mode& mode : {synchronous(6), with_backups(6, 2), dropping(6, 2), bounded(6, 3), asynchronous(6),
                           delay_compensated(6, 0.5)}) {
    const TrainingResult result = *training->run(mode, {.delays = kDelays});
    EXPECT_TRUE(result.reached) << mode.name;
    ASSERT_FALSE(result.evaluations.empty());
    EXPECT_GE(result.evaluations.back().accuracy, 0.93) << mode.name;
    EXPECT_EQ(result.evaluations.back().ms, result.cluster.ms) << "it ends there";
    EXPECT_LT(result.cluster.steps, 600);
  }
}

TEST(VirtualTrainingTest, WorkersSumToTheBatchOfOne) {
  const auto training = open(digits(60));
  const std::vector<double> one = losses(*training->run(synchronous(1), {.delays = kDelays}));
  ASSERT_EQ(one.size(), 60u);
  EXPECT_LT(one.back(), one.front() / 2);
  for (const Mode& mode : {synchronous(4), synchronous(5), with_backups(6, 2)}) {
    const std::vector<double> many = losses(*training->run(mode, {.delays = kDelays}));
    ASSERT_EQ(many.size(), one.size()) << mode.name;
    // With backups, which units meet in an update is chance, but for the first.
    const std::size_t comparable = mode.batch() == 1 && mode.samples_per_gradient() > 1 ? 0 : one.size();
    for (std::size_t i = 0; i < comparable; ++i) EXPECT_NEAR(many[i], one[i], 1e-3) << mode.name << " " << i;
    EXPECT_NEAR(many.back(), one.back(), 0.3 * one.back()) << mode.name;
  }
}

TEST(VirtualTrainingTest, StalenessZeroIsSynchronousToTheBit) {
  const auto training = open(digits(40));
  const TrainingResult a = *training->run(synchronous(5), {.delays = kDelays});
  const TrainingResult b = *training->run(bounded(5, 0), {.delays = kDelays});
  EXPECT_EQ(losses(a), losses(b));
  EXPECT_EQ(a.cluster.ms, b.cluster.ms);
  EXPECT_NE(losses(a), losses(*training->run(bounded(5, 2), {.delays = kDelays})));
}

TEST(VirtualTrainingTest, CompensationIsNothingWithoutLambdaOrWithoutDelay) {
  const auto training = open(digits(30));
  const std::vector<double> plain = losses(*training->run(asynchronous(5), {.delays = kDelays}));
  EXPECT_EQ(losses(*training->run(delay_compensated(5, 0), {.delays = kDelays})), plain);
  EXPECT_NE(losses(*training->run(delay_compensated(5, 2), {.delays = kDelays})), plain);
  const std::vector<double> alone = losses(*training->run(asynchronous(1), {.delays = kDelays}));
  EXPECT_EQ(losses(*training->run(delay_compensated(1, 2), {.delays = kDelays})), alone)
      << "nobody changes what one reads";
}

TEST(VirtualTrainingTest, DroppedGradientsAreMadeUpForByTheScale) {
  const auto training = open(digits(60));
  const std::vector<double> all = losses(*training->run(synchronous(6), {.delays = kDelays}));
  const std::vector<double> some = losses(*training->run(dropping(6, 2), {.delays = kDelays}));
  ASSERT_EQ(some.size(), all.size());
  EXPECT_NEAR(some.back(), all.back(), 0.3 * all.back()) << "as many steps go as far";
}

TEST(VirtualTrainingTest, SeedsRepeat) {
  const auto training = open(digits(20));
  const TrainingResult first = *training->run(asynchronous(4), {.delays = kDelays, .seed = 3});
  EXPECT_EQ(losses(*training->run(asynchronous(4), {.delays = kDelays, .seed = 3})), losses(first));
  EXPECT_NE(losses(*training->run(asynchronous(4), {.delays = kDelays, .seed = 4})), losses(first));
  EXPECT_NE(losses(*training->run(asynchronous(4), {.delays = kDelays, .seed = 3, .training_seed = 2})),
            losses(first));
}

TEST(VirtualTrainingTest, SaysWhenItDiverges) {
  v1::TrainingSpec spec = digits(200);
  spec.mutable_optimizer()->set_learning_rate(1e38);
  const TrainingResult result = *open(spec)->run(synchronous(2), {.delays = kDelays});
  EXPECT_TRUE(result.diverged);
  EXPECT_FALSE(result.reached);
  EXPECT_LT(result.cluster.steps, 200);
  spec.mutable_optimizer()->set_clip_norm(1);
  spec.mutable_optimizer()->set_learning_rate(1e30);
  EXPECT_TRUE(open(spec)->run(synchronous(2), {.delays = kDelays})->diverged);
}

TEST(VirtualTrainingTest, RefusesWhatCanNotBeCompared) {
  const auto training = open(digits(20));
  EXPECT_THAT(std::string(training->run(synchronous(49), {}).status().message()),
              HasSubstr("globalBatchSize 48 can't be cut into 49"));
  EXPECT_EQ(training->run(bounded(4, -1), {}).status().code(), absl::StatusCode::kInvalidArgument);
  v1::TrainingSpec spec = digits(20);
  spec.mutable_data()->set_test_fraction(0);
  EXPECT_THAT(std::string(VirtualTraining::open(spec).status().message()), HasSubstr("no held-out samples"));
}

}  // namespace
}  // namespace paceline::simulation
