#include "runtime/trainer/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "runtime/collective/fault.h"
#include "runtime/trainer/limits.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/early_clock.h"
#include "tests/support/fake_clock.h"
#include "tests/support/slow_files.h"
#include "tests/support/step_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_job.h"
#include "tests/unit/runtime/trainer/call_teller.h"

namespace paceline::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Hashes train(int world, const v1::TrainingSpec& spec, std::vector<double> shares = {}) {
  const auto count = static_cast<std::size_t>(world);
  return paceline::train({count, step_workload(kStepTrain, kStepTest)}, spec, std::move(shares));
}

// A job of one member, which trains until it ends by itself.
class Alone {
 public:
  explicit Alone(const v1::TrainingSpec& spec) : job_(1, spec, step_workload(kStepTrain, kStepTest)) {
    job_.send_view(job_.view(1, {0}));
    job_.run();
  }
  const Outcome& outcome() { return job_.member(0).outcome; }
  std::string error() { return std::string(outcome().error.message()); }
  // It failed before its first step, by how the job is written.
  bool is_refused() {
    return outcome().ending == Ending::kFailed && outcome().configuration && outcome().step == 0 &&
           job_.member(0).membership->leaving()->outcome() == v1::Leaving::FAILED;
  }

 private:
  ThreadJob job_;
};

// What a training of so many steps, with a checkpoint at its end, has left in `folder`: its spec, to go on
// with.
v1::TrainingSpec trained_in(const std::string& folder, std::int64_t steps) {
  v1::TrainingSpec spec = step_spec(steps, 32);
  save_in(spec, folder, steps);
  train(1, spec);
  return spec;
}

TEST(Trainer, OneWorkerAndManyHaveTheSameWeightsToTheBitAtEveryStep) {
  const v1::TrainingSpec spec = step_spec(30, 32);
  const Hashes one = train(1, spec);
  ASSERT_EQ(one.size(), 31u);
  EXPECT_NE(one.at(1), one.at(30));
  EXPECT_EQ(train(2, spec), one);
  EXPECT_EQ(train(3, spec), one);
  EXPECT_EQ(train(4, spec), one);
}

TEST(Trainer, ACheckIsAnsweredBeforeTheFirstView) {
  ThreadJob job(1, step_spec(3, 32), step_workload(kStepTrain, kStepTest));
  std::optional<v1::PreflightResult> answer;
  {
    const std::jthread coordinator([&] {
      v1::Preflight word;
      word.set_number(7);
      answer = job.member(0).membership->ask(word);
      job.member(0).membership->send_view(job.view(1, {0}));
    });
    job.run();
  }
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->number(), 7U);
  EXPECT_FALSE(answer->error().empty()) << "these members have no compute test";
  EXPECT_EQ(job.member(0).outcome.ending, Ending::kFinished);
}

TEST(Trainer, UnevenSharesEvenEmptyOnesChangeNothing) {
  const v1::TrainingSpec spec = step_spec(20, 32);
  const Hashes one = train(1, spec);
  EXPECT_EQ(train(3, spec, {0.5, 0.3, 0.2}), one);
  EXPECT_EQ(train(2, spec, {1.0, 0.0}), one);
}

TEST(Trainer, AccumulationInMicroBatchesChangesNothing) {
  v1::TrainingSpec spec = step_spec(20, 32);
  const Hashes whole = train(2, spec);
  for (const std::int64_t micro : {1, 3, 8, 100}) {
    spec.set_micro_batch_size(micro);
    EXPECT_EQ(train(2, spec), whole) << "micro-batches of " << micro;
  }
}

TEST(Trainer, OverlapChangesNothing) {
  v1::TrainingSpec spec = step_spec(20, 32);
  const Hashes overlapped = train(2, spec);
  spec.mutable_exchange()->set_overlap(false);
  EXPECT_EQ(train(2, spec), overlapped);
}

TEST(Trainer, AContinuedRunHasTheWeightsOfAnUnbrokenOne) {
  for (const int type : {v1::OptimizerSpec::SGD, v1::OptimizerSpec::ADAM}) {
    const TemporaryFolder folder;
    v1::TrainingSpec spec = step_spec(24, 32);
    spec.mutable_optimizer()->set_type(static_cast<v1::OptimizerSpec::Type>(type));
    spec.mutable_optimizer()->set_momentum(0.5);
    spec.mutable_optimizer()->set_beta1(0.9);
    spec.mutable_optimizer()->set_beta2(0.999);
    spec.mutable_optimizer()->set_epsilon(1e-8);
    const Hashes unbroken = train(2, spec);

    save_in(spec, folder.path(), 5);
    spec.mutable_checkpoint()->set_keep(2);
    spec.set_steps(10);
    train(2, spec);
    spec.set_steps(24);
    spec.mutable_checkpoint()->set_resume(true);
    const Hashes rest = train(2, spec);
    EXPECT_EQ(rest.begin()->first, 10) << "it goes on where it was";
    for (const auto& [step, hash] : rest) EXPECT_EQ(hash, unbroken.at(step)) << "step " << step;
  }
}

TEST(Trainer, CheckpointsOfAnEarlierTrainingAreNotMixedWithNewOnes) {
  const TemporaryFolder folder;
  const v1::TrainingSpec spec = trained_in(folder.path(), 4);
  const std::string saving =
      folder.path() + "/.saving";  // the earlier one may go on, and be saving right now
  ASSERT_TRUE(std::filesystem::create_directory(saving));
  Alone job(spec);
  EXPECT_TRUE(job.is_refused());
  EXPECT_THAT(job.error(), HasSubstr("--resume"));
  EXPECT_TRUE(std::filesystem::exists(saving));
}

TEST(Trainer, ACheckpointOfAnotherJobIsRefused) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = trained_in(folder.path(), 4);
  spec.set_seed(77);
  spec.mutable_checkpoint()->set_resume(true);
  Alone job(spec);
  EXPECT_TRUE(job.is_refused());
  EXPECT_THAT(job.error(), HasSubstr("seed"));
}

TEST(Trainer, ACheckpointOfMoreStepsThanTheJobHasIsRefused) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = trained_in(folder.path(), 8);
  spec.set_steps(4);
  spec.mutable_checkpoint()->set_resume(true);
  Alone job(spec);
  EXPECT_TRUE(job.is_refused());
  EXPECT_THAT(job.error(), HasSubstr("has 8 steps already, more than the 4 of this job"));
}

// Training all over again would not be what --resume asks for.
TEST(Trainer, DamagedCheckpointsAreNotABeginning) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = trained_in(folder.path(), 4);
  std::filesystem::resize_file(folder.path() + "/step-000000004/state.safetensors", 100);
  spec.mutable_checkpoint()->set_resume(true);
  Alone job(spec);
  EXPECT_EQ(job.outcome().ending, Ending::kFailed);
  EXPECT_THAT(job.error(), HasSubstr("damaged"));
}

TEST(Trainer, CheckpointsThatCantBeWrittenEndTheJobBeforeItsFirstStep) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/file") << "x";
  v1::TrainingSpec spec = step_spec(4, 32);
  save_in(spec, folder.path() + "/file", 4);
  Alone job(spec);
  EXPECT_EQ(job.outcome().ending, Ending::kFailed);
  EXPECT_EQ(job.outcome().step, 0);
  EXPECT_THAT(job.error(), HasSubstr("no checkpoints can be written"));
}

// Another member's pod may wait for a free node: whoever waits for it has not failed.
TEST(Trainer, AViewMayTakeAnyTimeToForm) {
  EarlyClock clock;
  ThreadJob job(1, step_spec(4, 32), step_workload(kStepTrain, 0), &clock);
  std::jthread trains([&] { job.run(); });
  auto& membership = *job.member(0).membership;
  EXPECT_TRUE(membership.waits_again(1));
  clock.go_on_by(std::chrono::hours(24));
  EXPECT_TRUE(membership.waits_again(2));
  job.send_view(job.view(1, {0}));
  trains.join();
  EXPECT_EQ(job.member(0).outcome.ending, Ending::kFinished) << job.member(0).outcome.error;
}

// The clock stands still: how long member 1 would wait in an exchange is what it was given for it.
TEST(Trainer, ASaveMayTakeLongerThanAnExchange) {
  constexpr Duration kTimeout = std::chrono::milliseconds(400);
  const TemporaryFolder folder;
  v1::TrainingSpec spec = step_spec(6, 32);
  spec.mutable_exchange()->set_timeout_ms(kTimeout / std::chrono::milliseconds(1));
  save_in(spec, folder.path(), 4);
  const FakeClock clock;
  ThreadJob job(2, spec, step_workload(kStepTrain, 0), &clock);
  std::atomic<Step> applied{0};
  std::mutex mutex;
  std::map<Step, std::set<Duration>> limits;  // of the exchanges after so many steps
  job.member(1).options.on_hash = [&](Step step, std::uint64_t) { applied = step; };
  job.member(1).fabric->wrap = [&](std::unique_ptr<collective::Communicator> links) {
    return std::make_unique<CallTeller>(std::move(links), [&](collective::Kind, Deadline deadline) {
      const std::lock_guard lock(mutex);
      limits[applied].insert(deadline.remaining(clock.now()));
    });
  };
  job.run_view({0, 1});
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
  EXPECT_EQ(job.member(0).membership->checkpoints().size(), 2u);
  for (const Step step : {1, 2, 3, 5}) EXPECT_THAT(limits[step], ElementsAre(kTimeout)) << "step " << step;
  EXPECT_THAT(limits[4], ElementsAre(kTimeout + kSaveLimit)) << "rank 0 saves before it comes";
}

// Its own signal handler may not end the process meanwhile.
TEST(Trainer, ASaveIsSeenByWhoWouldEndTheProcess) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = step_spec(6, 32);
  save_in(spec, folder.path(), 4);
  ThreadJob job(1, spec, step_workload(kStepTrain, 0));
  std::map<Step, bool> saving;
  job.member(0).options.hash_every = 5;
  job.member(0).options.on_hash = [&](Step step, std::uint64_t) {
    saving[step] = job.member(0).stop.saving();
  };
  job.run_view({0});
  EXPECT_EQ(saving, (std::map<Step, bool>{{0, false}, {4, true}, {5, false}, {6, true}}));
  EXPECT_FALSE(job.member(0).stop.saving());
}

// The newest manifest is not read, and then not there, before both members are connected.
TEST(Trainer, ALoadThatTakesItsTimeIsWaitedForByConnectedMembers) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = step_spec(8, 32);
  save_in(spec, folder.path(), 4);
  spec.mutable_checkpoint()->set_keep(2);
  const Hashes unbroken = train(2, spec);
  const std::string manifest = folder.path() + "/step-000000008/manifest.json";
  std::filesystem::remove(manifest);
  spec.mutable_checkpoint()->set_resume(true);
  ThreadJob job(2, spec, step_workload(kStepTrain, kStepTest));
  bool connected = false;
  SlowFiles files([&](const std::string& path) {
    if (path != manifest) return;
    const SystemClock clock;
    const Deadline limit = Deadline::after(clock.now(), std::chrono::seconds(10));
    while (!connected && !limit.expired(clock.now())) {
      connected = job.member(0).fabric->connected() && job.member(1).fabric->connected();
      std::this_thread::yield();
    }
  });
  job.member(0).files = &files;
  job.run_view({0, 1});
  EXPECT_TRUE(connected) << "rank 0 reads before it is connected";
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
    EXPECT_EQ(job.member(rank).hashes.begin()->first, 4);
    EXPECT_EQ(job.member(rank).hashes.at(8), unbroken.at(8));
  }
}

TEST(Trainer, Rank0SavesWhenItIsAskedTo) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = step_spec(8, 32);
  save_in(spec, folder.path(), 0);
  ThreadJob job(2, spec, step_workload(kStepTrain, kStepTest));
  job.member(0).options.on_hash = [&job](Step step, std::uint64_t) {
    if (step == 3) job.member(0).membership->ask_to_save();
  };
  job.run_view({0, 1});
  const auto saved = job.member(0).membership->checkpoints();
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0].step(), 4) << "after the step that follows";
  EXPECT_EQ(saved[0].error(), "");
}

TEST(Trainer, Rank0WritesCheckpointsAndTheModelAndSaysSo) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = step_spec(6, 32);
  save_in(spec, folder.path() + "/checkpoints", 4);
  spec.mutable_checkpoint()->set_model_directory(folder.path() + "/model");
  ThreadJob job(2, spec, step_workload(kStepTrain, kStepTest));
  job.run_view({0, 1});
  auto& first = *job.member(0).membership;
  ASSERT_EQ(first.checkpoints().size(), 2u);  // step 4 and the end
  // Who waits for their end sees that they go on: of each file its header and tensors, or its text, and its
  // sync.
  const auto state = checkpoint::CheckpointStore(folder.path() + "/checkpoints", 1).load_latest();
  const auto written = checkpoint::read_model(folder.path() + "/model/model.safetensors");
  ASSERT_TRUE(state.ok() && written.ok()) << state.status() << written.status();
  const std::size_t of_state = 1 + state->tensors.size() + 1, of_manifest = 1 + 1,
                    of_model = 1 + written->tensors.size() + 1;
  EXPECT_EQ(job.member(0).stop.moves(), 2 * (of_state + of_manifest) + of_model);
  EXPECT_EQ(job.member(1).stop.moves(), 0u);
  EXPECT_EQ(first.checkpoints()[0].step(), 4);
  EXPECT_EQ(first.checkpoints()[0].error(), "");
  EXPECT_EQ(first.checkpoints()[0].path(), folder.path() + "/checkpoints/step-000000004");
  EXPECT_TRUE(job.member(1).membership->checkpoints().empty());
  EXPECT_EQ(first.leaving()->model_path(), folder.path() + "/model/model.safetensors");
  EXPECT_EQ(job.member(1).membership->leaving()->model_path(), "");

  const auto model = checkpoint::read_model(first.leaving()->model_path());
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->tensors.size(), 2u);
  EXPECT_EQ(model->tensors[0].name, "first");
  EXPECT_THAT(model->tensors[1].dims, ElementsAre(16));
}

TEST(Trainer, HeartbeatsTellLossTimesAndEvaluations) {
  v1::TrainingSpec spec = step_spec(8, 32);
  spec.mutable_evaluation()->set_every_steps(4);
  ThreadJob job(2, spec, step_workload(kStepTrain, kStepTest));
  job.run_view({0, 1});
  v1::Heartbeat beat, other;
  job.member(0).membership->progress().collect(&beat);
  job.member(1).membership->progress().collect(&other);
  EXPECT_EQ(beat.step(), 8);
  EXPECT_EQ(beat.samples(), 8 * 32);
  EXPECT_EQ(beat.total_steps(), 8);
  EXPECT_EQ(beat.train_samples(), kStepTrain);
  EXPECT_EQ(beat.parameter_count(), 40u);
  ASSERT_EQ(beat.records_size(), 8);
  EXPECT_GT(beat.records(0).loss(), 0);
  ASSERT_EQ(beat.evaluations_size(), 2);
  EXPECT_EQ(beat.evaluations(1).step(), 8);
  EXPECT_EQ(beat.evaluations(1).samples(), kStepTest);
  EXPECT_EQ(other.records_size(), 0);
  EXPECT_EQ(other.evaluations_size(), 0);
  EXPECT_EQ(beat.weights_hash(), other.weights_hash());
  EXPECT_EQ(beat.weights_hash_step(), 8);
  EXPECT_GT(beat.bytes_sent(), 0u);
  EXPECT_EQ(beat.steps(), 8);
}

// A data set that calls `look` at each read.
class LookedAtDataset final : public data::Dataset {
 public:
  LookedAtDataset(std::int64_t size, std::function<void()> look) : samples_(size), look_(std::move(look)) {}
  const data::SampleShape& shape() const override { return samples_.shape(); }
  std::int64_t size() const override { return samples_.size(); }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t seed,
                     const data::BatchView& batch) const override {
    look_();
    return samples_.fetch(indices, seed, batch);
  }

 private:
  const StepDataset samples_;
  const std::function<void()> look_;
};

TEST(Trainer, AHeartbeatWithinAStepTellsThePartAndTheStep) {
  v1::TrainingSpec spec = step_spec(3, 32);
  spec.mutable_data()->set_prefetch(0);
  ThreadJob* whole = nullptr;
  std::vector<std::pair<Step, v1::StepPart>> told;
  v1::Heartbeat beat;
  const auto look = [&] {
    whole->member(0).membership->progress().collect(&beat);
    told.emplace_back(beat.step(), beat.part());
  };
  ThreadJob job(1, spec, [&](const v1::TrainingSpec&) -> absl::StatusOr<Workload> {
    Workload workload = workload_of<StepDataset, StepProgram>(kStepTrain, kStepTest);
    workload.data.train = std::make_shared<LookedAtDataset>(kStepTrain, look);
    return workload;
  });
  whole = &job;
  job.run_view({0});
  EXPECT_THAT(told, ElementsAre(std::pair(0, v1::PART_INPUT), std::pair(1, v1::PART_INPUT),
                                std::pair(2, v1::PART_INPUT)));
  job.member(0).membership->progress().collect(&beat);
  EXPECT_EQ(beat.part(), v1::PART_NONE);
}

// The loss that the members report together is the loss of the same samples in one member.
TEST(Trainer, TheRecordedLossIsTheGlobalMean) {
  const auto losses = [](int world) {
    ThreadJob job(world, step_spec(5, 32), step_workload(kStepTrain, 0));
    std::vector<int> ranks;
    for (int rank = 0; rank < world; ++rank) ranks.push_back(rank);
    job.run_view(ranks);
    v1::Heartbeat beat;
    job.member(0).membership->progress().collect(&beat);
    std::vector<double> values;
    for (const auto& record : beat.records()) values.push_back(record.loss());
    return values;
  };
  EXPECT_EQ(losses(4), losses(1));
}

TEST(Trainer, ReachingTheTargetEndsAllAtTheSameStep) {
  v1::TrainingSpec spec = step_spec(1000, 32);
  spec.mutable_evaluation()->set_every_steps(3);
  spec.mutable_target()->set_metric("loss");
  spec.mutable_target()->set_value(1e9);
  ThreadJob job(3, spec, step_workload(kStepTrain, kStepTest));
  job.run_view({0, 1, 2});
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished);
    EXPECT_EQ(job.member(rank).outcome.step, 3);
  }
}

TEST(Trainer, AStopOfOneIsAStopOfAllAfterTheSameStep) {
  ThreadJob job(3, step_spec(1'000'000, 32), step_workload(kStepTrain, 0));
  job.send_view(job.view(1, {0, 1, 2}));
  // Asked in the middle of training, by its own thread: at its 20th step.
  auto& stopping = job.member(1);
  stopping.at_step(20, [&] { stopping.stop.request(); });
  job.run();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kStopped);
    EXPECT_EQ(job.member(rank).outcome.step, 21);
    EXPECT_EQ(job.member(rank).membership->leaving()->outcome(), v1::Leaving::STOPPED);
    EXPECT_EQ(job.member(rank).membership->leaving()->follows(), rank != 1);
  }
}

TEST(Trainer, AStopBeforeAnyViewLeavesAtOnce) {
  ThreadJob job(1, step_spec(10, 32), step_workload(kStepTrain, 0));
  job.member(0).stop.request();
  job.run();
  EXPECT_EQ(job.member(0).outcome.ending, Ending::kStopped);
  EXPECT_EQ(job.member(0).outcome.step, 0);
}

// The peer never comes; the end of patience ends the wait for it.
TEST(Trainer, AnExpiredStopWaitsForNobody) {
  ThreadJob job(2, step_spec(10, 32), step_workload(kStepTrain, 0));
  job.send_view(job.view(1, {0, 1}));
  auto& waiting = job.member(0);
  const auto open = waiting.workload;
  std::jthread patience;
  waiting.workload = [&](const v1::TrainingSpec& spec) {
    patience = std::jthread([&waiting] { waiting.stop.expire(); });
    return open(spec);
  };
  job.run(1);
  EXPECT_EQ(waiting.outcome.ending, Ending::kStopped);
  EXPECT_TRUE(waiting.membership->faults().empty());
}

// Member 1 goes away in the middle; the others say whom they lost, and go on in the next view without it,
// with the weights of the last step that all applied.
TEST(Trainer, ALostPeerIsReportedAndTheNextViewGoesOn) {
  const v1::TrainingSpec spec = step_spec(40, 32);
  const Hashes unbroken = train(1, spec);

  ThreadJob job(3, spec, step_workload(kStepTrain, kStepTest));
  job.send_view(job.view(1, {0, 1, 2}));
  auto& lost = job.member(1);
  lost.at_step(10, [&] { lost.membership->end(absl::AbortedError("evicted by the test")); });
  job.go_on_in(job.view(2, {0, 2}), {0, 2});
  job.run();
  EXPECT_EQ(lost.outcome.ending, Ending::kEnded);
  EXPECT_THAT(std::string(lost.outcome.error.message()), HasSubstr("evicted by the test"));
  for (const int rank : {0, 2}) {
    const auto& survivor = job.member(rank);
    EXPECT_EQ(survivor.outcome.ending, Ending::kFinished) << survivor.outcome.error;
    ASSERT_EQ(survivor.membership->faults().size(), 1u);
    EXPECT_EQ(survivor.membership->faults()[0].generation(), 1u);
    EXPECT_EQ(survivor.membership->faults()[0].peer_member_id(), "m1");
    EXPECT_EQ(survivor.hashes, unbroken);
  }
}

// A newcomer holds nothing, whichever rank it gets: it has the state from those that do.
TEST(Trainer, ANewcomerJoinsAtTheEndOfAStepWithTheStateOfTheOthers) {
  v1::TrainingSpec spec = step_spec(40, 32);
  spec.mutable_optimizer()->set_momentum(0.5);
  const Hashes unbroken = train(1, spec);
  ThreadJob job(3, spec, step_workload(kStepTrain, kStepTest));
  const v1::View first = job.view(1, {0, 1});
  for (const int rank : {0, 1}) job.member(rank).membership->send_view(first);
  job.drain_at(1, 10, job.view(2, {2, 0, 1}));
  job.run();
  for (int rank = 0; rank < 3; ++rank) {
    const auto& member = job.member(rank);
    EXPECT_EQ(member.outcome.ending, Ending::kFinished) << member.outcome.error;
    EXPECT_TRUE(member.membership->faults().empty());
    for (const auto& [step, hash] : member.hashes) EXPECT_EQ(hash, unbroken.at(step)) << "step " << step;
  }
  EXPECT_GE(job.member(2).hashes.begin()->first, 10) << "it takes no step that was taken";
  EXPECT_EQ(job.member(0).hashes.size(), unbroken.size());
}

// A view that has others leaves it out; it waits, and joins again with their state.
TEST(Trainer, AMemberThatIsLeftOutStandsBy) {
  const v1::TrainingSpec spec = step_spec(40, 32);
  const Hashes unbroken = train(1, spec);
  ThreadJob job(3, spec, step_workload(kStepTrain, kStepTest));
  job.drain_at(1, 10, job.view(2, {0, 1}));
  job.member(0).at_step(20, [&] {
    EXPECT_TRUE(job.member(2).membership->waits_again(2));
    v1::Heartbeat beat;
    job.member(2).membership->progress().collect(&beat);
    EXPECT_EQ(beat.generation(), 0) << "it is in no view";
    job.member(0).membership->drain(Generation{2});
    for (const int rank : {0, 1, 2}) job.member(rank).membership->offer_view(job.view(3, {0, 1, 2}));
  });
  job.run_view({0, 1, 2});
  for (int rank = 0; rank < 3; ++rank) {
    const auto& member = job.member(rank);
    EXPECT_EQ(member.outcome.ending, Ending::kFinished) << member.outcome.error;
    for (const auto& [step, hash] : member.hashes) EXPECT_EQ(hash, unbroken.at(step)) << "step " << step;
  }
  EXPECT_EQ(job.member(0).hashes.size(), unbroken.size());
  EXPECT_TRUE(job.member(2).hashes.contains(10));
  EXPECT_FALSE(job.member(2).hashes.contains(15));
  EXPECT_TRUE(job.member(2).hashes.contains(30));
}

// Rank 0 is lost, and the first of those that are left has its duties.
TEST(Trainer, ALostRank0LeavesItsDutiesToTheNext) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = step_spec(20, 32);
  spec.mutable_evaluation()->set_every_steps(4);
  save_in(spec, folder.path() + "/checkpoints", 8);
  spec.mutable_checkpoint()->set_model_directory(folder.path() + "/model");
  ThreadJob job(3, spec, step_workload(kStepTrain, kStepTest));
  auto& lost = job.member(0);
  lost.at_step(10, [&] { lost.membership->end(absl::AbortedError("evicted by the test")); });
  job.go_on_in(job.view(2, {1, 2}), {1, 2});
  job.run_view({0, 1, 2});
  auto& next = *job.member(1).membership;
  EXPECT_EQ(job.member(1).outcome.ending, Ending::kFinished) << job.member(1).outcome.error;
  v1::Heartbeat beat;
  next.progress().collect(&beat);
  std::vector<Step> evaluated;
  for (const auto& evaluation : beat.evaluations()) evaluated.push_back(evaluation.step());
  EXPECT_THAT(evaluated, ElementsAre(12, 16, 20));
  std::vector<Step> saved;
  for (const auto& checkpoint : next.checkpoints()) saved.push_back(checkpoint.step());
  EXPECT_THAT(saved, ElementsAre(16, 20)) << "8 was rank 0's";
  EXPECT_EQ(next.leaving()->model_path(), folder.path() + "/model/model.safetensors");
}

TEST(Trainer, AnAbandonedEvaluationIsTakenAgainInTheNextView) {
  v1::TrainingSpec spec = step_spec(8, 32);
  spec.mutable_evaluation()->set_every_steps(4);
  ThreadJob job(3, spec, step_workload(kStepTrain, kStepTest));
  auto& lost = job.member(1);
  lost.at_step(4, [&] { lost.membership->end(absl::AbortedError("evicted by the test")); });
  job.go_on_in(job.view(2, {0, 2}), {0, 2});
  job.run_view({0, 1, 2});
  v1::Heartbeat beat;
  job.member(0).membership->progress().collect(&beat);
  ASSERT_EQ(beat.evaluations_size(), 2);
  EXPECT_EQ(beat.evaluations(0).step(), 4);
  EXPECT_EQ(beat.evaluations(1).step(), 8);
}

// The view that follows says that this one is over: no peer needs to be missed.
TEST(Trainer, ANewerViewEndsTheWaitInTheEarlierOne) {
  const v1::TrainingSpec spec = step_spec(30, 32);
  const Hashes unbroken = train(1, spec);
  ThreadJob job(3, spec, step_workload(kStepTrain, kStepTest));
  job.send_view(job.view(1, {0, 1, 2}));
  auto& frozen = job.member(1);
  frozen.at_step(10, [&] {
    for (const int rank : {0, 2}) job.member(rank).membership->send_view(job.view(2, {0, 2}));
    EXPECT_TRUE(job.member(0).membership->wait_until_left());
    frozen.membership->end(absl::AbortedError("it comes back, and is refused"));
  });
  job.run();
  for (const int rank : {0, 2}) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
    EXPECT_EQ(job.member(rank).hashes, unbroken);
  }
  EXPECT_EQ(frozen.outcome.ending, Ending::kEnded);
}

TEST(Trainer, AMemberThatIsAskedToStopLeavesTheOthersAtTheEndOfAStep) {
  const v1::TrainingSpec spec = step_spec(40, 32);
  const Hashes unbroken = train(1, spec);
  ThreadJob job(3, spec, step_workload(kStepTrain, kStepTest));
  for (int rank = 0; rank < 3; ++rank) job.member(rank).membership->set_elastic();
  job.send_view(job.view(1, {0, 1, 2}));
  auto& leaves = job.member(1);
  leaves.at_step(10, [&] { leaves.stop.request(); });
  {
    std::jthread coordinator([&] {
      EXPECT_TRUE(leaves.membership->wait_until_left());
      for (const int rank : {0, 2}) job.member(rank).membership->send_view(job.view(2, {0, 2}));
    });
    job.run();
  }
  EXPECT_EQ(leaves.outcome.ending, Ending::kStopped);
  EXPECT_EQ(leaves.outcome.step, 11);
  for (const int rank : {0, 2}) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
    EXPECT_EQ(job.member(rank).hashes, unbroken);
  }
}

// Its rank 0 is lost, and no view follows: what all hold is saved by whom the coordinator asks to.
TEST(Trainer, TheChosenMemberSavesWhenTheJobEndsWithoutItsRank0) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = step_spec(1'000'000, 32);
  spec.mutable_checkpoint()->set_directory(folder.path());
  ThreadJob job(3, spec, step_workload(kStepTrain, 0));
  for (const int rank : {1, 2}) {
    auto* membership = job.member(rank).membership.get();
    membership->to_save = rank == 1;
    membership->on_fault = [membership](const v1::PeerFault&) {
      membership->end(absl::AbortedError("rank 0 is lost"));
    };
  }
  auto& lost = job.member(0);
  lost.at_step(10, [&] { lost.membership->end(absl::DataLossError("it saves nothing")); });
  job.run_view({0, 1, 2});
  const auto saved = checkpoint::CheckpointStore(folder.path(), 1).peek_latest();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->progress.step, 10);
  EXPECT_NE(job.member(1).outcome.checkpoint_path, "");
  EXPECT_EQ(job.member(2).outcome.checkpoint_path, "");
}

TEST(Trainer, AnEvictedMemberDoesNotBlameItsPeers) {
  ThreadJob job(2, step_spec(1'000'000, 32), step_workload(kStepTrain, 0));
  job.send_view(job.view(1, {0, 1}));
  for (int rank = 0; rank < 2; ++rank) {
    auto& member = job.member(rank);
    member.options.on_hash = [&job](Step step, std::uint64_t) {
      if (step != 10) return;
      for (int r = 0; r < 2; ++r) job.member(r).membership->end(absl::AbortedError("worker-9 died"));
    };
  }
  job.run();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kEnded);
    EXPECT_TRUE(job.member(rank).membership->faults().empty());
    ASSERT_TRUE(job.member(rank).membership->leaving().has_value());
    EXPECT_EQ(job.member(rank).membership->leaving()->outcome(), v1::Leaving::STOPPED);
    EXPECT_TRUE(job.member(rank).membership->leaving()->follows()) << "it doesn't take the blame";
  }
}

TEST(Trainer, MissingDataIsAnErrorOfConfiguration) {
  const auto broken = [](const v1::TrainingSpec&) -> absl::StatusOr<Workload> {
    return absl::NotFoundError("data.train.inputs: /nowhere: no such file");
  };
  ThreadJob job(1, step_spec(5, 32), broken);
  job.run();
  EXPECT_EQ(job.member(0).outcome.ending, Ending::kFailed);
  EXPECT_TRUE(job.member(0).outcome.configuration);
  EXPECT_THAT(job.member(0).membership->leaving()->reason(), HasSubstr("/nowhere"));
}

// Of two members: whichever of them fails, rank 0 saves the last applied step before it leaves.
TEST(Trainer, WhateverFailsAfterAStepTheWeightsAreSavedFirst) {
  enum class Fault : std::uint8_t { kInput, kEvaluation, kModel };
  for (const Fault fault : {Fault::kInput, Fault::kEvaluation, Fault::kModel}) {
    for (const int failing : {0, 1}) {
      if (fault == Fault::kModel && failing != 0) continue;
      SCOPED_TRACE(str_cat("fault ", static_cast<int>(fault), " of rank ", failing));
      const TemporaryFolder folder;
      v1::TrainingSpec spec = step_spec(6, 32);
      spec.mutable_checkpoint()->set_directory(folder.path() + "/checkpoints");
      spec.mutable_checkpoint()->set_model_directory(folder.path() + "/model");
      ThreadJob job(2, spec, step_workload(kStepTrain, kStepTest));
      auto& member = job.member(failing);
      if (fault != Fault::kModel) {
        member.workload = [fault](const v1::TrainingSpec& read) -> absl::StatusOr<Workload> {
          PL_ASSIGN_OR_RETURN(Workload workload, step_workload(kStepTrain, kStepTest)(read));
          auto& samples = fault == Fault::kInput ? workload.data.train : workload.data.test;
          const int reads = fault == Fault::kInput ? 4 : 0;
          samples = std::make_shared<FailingDataset>(samples->size(), reads);
          return workload;
        };
      }
      SlowFiles files;
      files.before_create = [](const std::string& path) -> absl::Status {
        return path.find("/model/") == std::string::npos ? absl::OkStatus()
                                                         : absl::ResourceExhaustedError("no room");
      };
      if (fault == Fault::kModel) member.files = &files;
      for (const int rank : {0, 1}) {  // the coordinator's word
        auto* membership = job.member(rank).membership.get();
        membership->on_fault = [membership](const v1::PeerFault&) {
          membership->end(absl::AbortedError("the other one failed"));
        };
      }
      job.run_view({0, 1});
      EXPECT_EQ(member.outcome.ending, Ending::kFailed) << member.outcome.error;
      const auto saved = checkpoint::CheckpointStore(spec.checkpoint().directory(), 1).peek_latest();
      ASSERT_TRUE(saved.ok()) << saved.status();
      EXPECT_EQ(saved->progress.step, fault == Fault::kInput ? 4 : 6);
      EXPECT_THAT(job.member(0).outcome.checkpoint_path, HasSubstr(saved->name));
      EXPECT_EQ(job.member(0).membership->leaving()->checkpoint_path(),
                job.member(0).outcome.checkpoint_path);
    }
  }
}

TEST(Trainer, ALossThatIsNotFiniteFailsWithAdviceAndSavesNothing) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = step_spec(50, 32);
  spec.mutable_checkpoint()->set_directory(folder.path());
  spec.mutable_optimizer()->set_learning_rate(1e38);
  ThreadJob job(2, spec, step_workload(kStepTrain, 0));
  job.run_view({0, 1});
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFailed);
    EXPECT_FALSE(job.member(rank).outcome.configuration);
    EXPECT_THAT(std::string(job.member(rank).outcome.error.message()), HasSubstr("learningRate"));
    EXPECT_GT(job.member(rank).outcome.step, 0);
    EXPECT_TRUE(job.member(rank).membership->checkpoints().empty());
  }
}

// A drain is agreed on: all leave the view after the same step, and the next view goes on from there.
TEST(Trainer, ADrainedViewIsFollowedByTheNext) {
  const v1::TrainingSpec spec = step_spec(30, 32);
  const Hashes unbroken = train(1, spec);
  ThreadJob job(2, spec, step_workload(kStepTrain, kStepTest));
  job.send_view(job.view(1, {0, 1}));
  job.drain_at(1, 10, job.view(2, {1, 0}));
  job.run();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
    EXPECT_EQ(job.member(rank).hashes, unbroken);
  }
}

// All threads: the trainers', their exchanges', their prefetchers'.
TEST(Trainer, NothingIsAllocatedAfterTheFirstSteps) {
  v1::TrainingSpec spec = step_spec(300, 32);
  spec.set_micro_batch_size(6);
  ThreadJob job(2, spec, step_workload(kStepTrain, 0));
  job.send_view(job.view(1, {0, 1}));
  std::int64_t before = 0, after = 0;
  job.member(1).options.on_hash = nullptr;
  job.member(0).options.on_hash = [&](Step step, std::uint64_t) {
    if (step == 10) before = allocations_of_all_threads();
    if (step == 290) after = allocations_of_all_threads();
  };
  job.run();
  ASSERT_GT(before, 0);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace paceline::trainer
