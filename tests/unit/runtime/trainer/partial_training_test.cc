// Training with partial steps: members whose passes take what the test says, on clocks of their own.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/vector_hash.h"
#include "runtime/data/ledger.h"
#include "runtime/trainer/batch.h"
#include "runtime/trainer/partial_steps.h"
#include "tests/support/early_clock.h"
#include "tests/support/step_model.h"
#include "tests/support/thread_job.h"

namespace paceline::trainer {
namespace {

// Long enough that what the machine takes beside them is nothing.
constexpr Duration kQuickPart = std::chrono::seconds(1000), kSlowPart = std::chrono::seconds(3500);
constexpr std::int64_t kPartialBatch = 16, kPartialPass = 4, kPartialWorld = 2;
constexpr int kPartialSteps = 80;

// In every tenth step all members are slow: both have done a half when they are out of time, so that what
// counts is doubled, and sums stay exact.
bool is_slow_step(Step step) {
  return step % 10 == 9;
}
// Steps that are measured are whole.
bool is_partial_step(Step step) {
  return is_slow_step(step) && step >= PartialSteps::kWarmUp + PartialSteps::kWindow;
}

struct MemberTime {
  EarlyClock clock;
  std::atomic<Step> step{0};  // applied so far
};

class TimedProgram final : public tensor::Program {
 public:
  TimedProgram(std::int64_t rows, MemberTime& time) : program_(rows), time_(time) {}
  const tensor::ParameterLayout& parameters() const override { return program_.parameters(); }
  std::int64_t max_rows() const override { return program_.max_rows(); }
  void bind(std::span<float> weights, std::span<float> gradients) override {
    program_.bind(weights, gradients);
  }
  void weights_changed() override { program_.weights_changed(); }
  void initialize(std::uint64_t seed, std::span<float> weights) const override {
    program_.initialize(seed, weights);
  }
  tensor::BatchMemory batch() override { return program_.batch(); }
  absl::StatusOr<tensor::ForwardResult> forward(std::int64_t rows) override {
    time_.clock.go_on_by(is_slow_step(time_.step) ? kSlowPart : kQuickPart);
    return program_.forward(rows);
  }
  absl::Status backward(float scale, bool accumulate, const OnReady& on_ready) override {
    return program_.backward(scale, accumulate, on_ready);
  }

 private:
  StepProgram program_;
  MemberTime& time_;
};

v1::TrainingSpec partial_spec(double max_drop_rate) {
  v1::TrainingSpec spec = step_spec(kPartialSteps, kPartialBatch);
  spec.set_micro_batch_size(kPartialPass);
  spec.mutable_exchange()->set_max_drop_rate(max_drop_rate);
  return spec;
}

struct PartiallyTrained {
  Hashes hashes;
  std::vector<std::int64_t> dropped;  // by rank
  std::vector<double> losses;         // of all steps
  std::vector<Step> cut;              // steps of rank 1 that would have taken longer
};

PartiallyTrained train_partially(double max_drop_rate) {
  std::vector<MemberTime> times(kPartialWorld);
  ThreadJob job(kPartialWorld, partial_spec(max_drop_rate), nullptr);
  for (int rank = 0; rank < kPartialWorld; ++rank) {
    MemberTime& time = times[static_cast<std::size_t>(rank)];
    ThreadJob::Member& member = job.member(rank);
    member.clock = &time.clock;
    member.workload = [&time](const v1::TrainingSpec&) -> absl::StatusOr<Workload> {
      Workload workload;
      workload.data.train = std::make_shared<StepDataset>(kStepTrain);
      workload.compile = [&time](
                             Purpose, std::int64_t rows,
                             const tensor::LeftRoom&) -> absl::StatusOr<std::unique_ptr<tensor::Program>> {
        return std::make_unique<TimedProgram>(rows, time);
      };
      return workload;
    };
    member.options.on_hash = [heard = member.options.on_hash, &time](Step step, std::uint64_t hash) {
      heard(step, hash);
      time.step = step;
    };
  }
  job.run_view({0, 1});
  PartiallyTrained trained;
  for (int rank = 0; rank < kPartialWorld; ++rank) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
    EXPECT_EQ(job.member(rank).hashes, job.member(0).hashes);
    v1::Heartbeat beat;
    job.member(rank).membership->progress().collect(&beat);
    trained.dropped.push_back(beat.dropped_samples());
    for (const auto& record : beat.records()) trained.losses.push_back(record.loss());
    for (int i = 0; rank == 1 && i < beat.step_times_size(); ++i) {
      if (beat.step_times(i).left_out_ns() > 0) trained.cut.push_back(beat.step_time_steps(i));
    }
  }
  trained.hashes = job.member(0).hashes;
  return trained;
}

// The mean over the samples that count, step by step.
PartiallyTrained expected_training() {
  const v1::TrainingSpec spec = partial_spec(0);
  const StepDataset samples(kStepTrain);
  const data::Ledger ledger({spec.seed(), kStepTrain, kPartialBatch});
  StepProgram program(kPartialBatch);
  const std::size_t size = program.parameters().elements;
  std::vector<float> weights(size), gradient(size);
  program.initialize(spec.seed(), weights);
  program.bind(weights, gradient);
  PartiallyTrained trained;
  trained.hashes[0] = vector_hash(weights);
  for (Step step = 0; step < kPartialSteps; ++step) {
    std::vector<std::int64_t> used, indices;
    for (int rank = 0; rank < kPartialWorld; ++rank) {
      ledger.samples_of(step, rank, std::vector<double>(kPartialWorld, 1.0 / kPartialWorld), indices);
      const std::size_t count = indices.size() / (is_partial_step(step) ? 2 : 1);
      used.insert(used.end(), indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(count));
    }
    const auto rows = static_cast<std::int64_t>(used.size());
    EXPECT_TRUE(samples.fetch(used, 0, batch_view(program.batch(), samples.shape(), rows)).ok());
    trained.losses.push_back(program.forward(rows)->loss_sum / static_cast<double>(rows));
    EXPECT_TRUE(program.backward(1.0F / static_cast<float>(rows), false, nullptr).ok());
    for (std::size_t i = 0; i < size; ++i)
      weights[i] -= static_cast<float>(spec.optimizer().learning_rate()) * gradient[i];
    trained.hashes[step + 1] = vector_hash(weights);
    if (!is_partial_step(step)) continue;
    trained.cut.push_back(step + 1);
    trained.dropped.assign(kPartialWorld,
                           static_cast<std::int64_t>(trained.cut.size()) * kPartialBatch / kPartialWorld / 2);
  }
  return trained;
}

TEST(PartialTraining, TheWeightsAreThoseOfTheSamplesThatCount) {
  const PartiallyTrained trained = train_partially(0.06), wanted = expected_training();
  EXPECT_EQ(trained.hashes, wanted.hashes);
  EXPECT_EQ(trained.losses, wanted.losses);
  EXPECT_EQ(trained.cut, wanted.cut);
  EXPECT_EQ(trained.dropped, wanted.dropped);
}

TEST(PartialTraining, NothingChangesWhereNothingIsLeftOut) {
  const PartiallyTrained whole = train_partially(0),
                         partial = train_partially(0.01);  // too little for a threshold
  EXPECT_EQ(partial.hashes, whole.hashes);
  EXPECT_EQ(partial.losses, whole.losses);
  EXPECT_EQ(partial.dropped, std::vector<std::int64_t>(kPartialWorld, 0));
  EXPECT_TRUE(partial.cut.empty());
}

}  // namespace
}  // namespace paceline::trainer
