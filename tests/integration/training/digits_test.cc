// The example job on the digits, trained by real members under a real coordinator.

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/integration/training/job.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

// All weights of the final model.
std::vector<float> trained_weights(int members, v1::TrainingSpec spec) {
  const TemporaryFolder folder;
  spec.mutable_checkpoint()->set_model_directory(folder.path());
  run_job(members, spec);
  const auto model = checkpoint::read_model(folder.path() + "/model.safetensors");
  EXPECT_TRUE(model.ok()) << model.status();
  std::vector<float> weights;
  if (!model.ok()) return weights;
  for (const auto& tensor : model->tensors) {
    const std::size_t at = weights.size();
    weights.resize(at + tensor.data.size() / sizeof(float));
    std::memcpy(weights.data() + at, tensor.data.data(), tensor.data.size());
  }
  return weights;
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return HUGE_VAL;
  double distance = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    distance += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    length += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(distance / length);
}

TEST(Digits, ReachTheTargetWhateverTheNumberOfMembers) {
  for (const int members : {1, 2, 4}) {
    v1::TrainingSpec spec = digits_spec(3000);
    spec.mutable_target()->set_metric("accuracy");
    spec.mutable_target()->set_value(0.96);
    spec.mutable_evaluation()->set_every_steps(50);
    const JobResult result = run_job(members, spec);
    EXPECT_EQ(result.report.state, coordinator::JobState::kFinished) << result.report.reason;
    const Step end = result.members[0].outcome.step;
    EXPECT_LT(end, 3000) << "the target ends the job";
    for (const auto& member : result.members) EXPECT_EQ(member.outcome.step, end);
  }
}

TEST(Digits, OneWorkerAndFourAgreeAfterAHundredSteps) {
  const v1::TrainingSpec spec = digits_spec(100);
  const auto one = trained_weights(1, spec);
  EXPECT_LT(relative_distance(one, trained_weights(4, spec)), 1e-5);
  EXPECT_GT(relative_distance(one, trained_weights(1, digits_spec(99))), 1e-5)
      << "the measure must see a step";
}

TEST(Digits, AccumulationAgreesWithWholeBatches) {
  v1::TrainingSpec spec = digits_spec(100);
  const auto whole = trained_weights(2, spec);
  spec.set_micro_batch_size(5);
  EXPECT_LT(relative_distance(whole, trained_weights(2, spec)), 1e-5);
}

TEST(Digits, ARunIsRepeatableToTheBitWithAndWithoutOverlap) {
  v1::TrainingSpec spec = digits_spec(60);
  spec.mutable_exchange()->set_bucket_bytes(4096);  // ten buckets
  spec.mutable_exchange()->set_overlap(true);
  const auto overlapped = run_job(2, spec).members[0].hashes;
  EXPECT_EQ(overlapped.size(), 61u);
  EXPECT_EQ(run_job(2, spec).members[0].hashes, overlapped);
  spec.mutable_exchange()->set_overlap(false);
  EXPECT_EQ(run_job(2, spec).members[0].hashes, overlapped);
}

TEST(Digits, AContinuedRunHasTheWeightsOfAnUnbrokenOne) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = digits_spec(60);
  const auto unbroken = run_job(2, spec).members[0].hashes;
  spec.mutable_checkpoint()->set_directory(folder.path());
  spec.mutable_checkpoint()->set_every_steps(20);
  spec.set_steps(40);
  run_job(2, spec);
  spec.set_steps(60);
  spec.mutable_checkpoint()->set_resume(true);
  const auto rest = run_job(2, spec).members[0].hashes;
  EXPECT_EQ(rest.begin()->first, 40);
  EXPECT_EQ(rest.rbegin()->first, 60);
  for (const auto& [step, hash] : rest) EXPECT_EQ(hash, unbroken.at(step)) << "step " << step;
}

TEST(Digits, TheTransportChangesNothingThatMatters) {
  v1::TrainingSpec spec = digits_spec(100);
  const auto shared = trained_weights(3, spec);
  spec.mutable_exchange()->set_transport(v1::ExchangeSpec::TCP);
  EXPECT_LT(relative_distance(shared, trained_weights(3, spec)), 1e-5);
}

TEST(Digits, TrainInBfloat16) {
  v1::TrainingSpec spec = digits_spec(2000);
  spec.set_precision(v1::PRECISION_BF16);
  spec.mutable_target()->set_metric("accuracy");
  spec.mutable_target()->set_value(0.94);
  spec.mutable_evaluation()->set_every_steps(100);
  const JobResult result = run_job(2, spec);
  EXPECT_LT(result.members[0].outcome.step, 2000);
  EXPECT_NE(result.members[0].hashes.at(100), run_job(2, digits_spec(100)).members[0].hashes.at(100))
      << "another precision gives other weights";
}

}  // namespace
}  // namespace paceline
