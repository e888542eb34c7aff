// Training where the members' devices have memory of their own: the same weights, to the bit, as on the
// processors, whatever happens to the members.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <thread>

#include "runtime/tensor/memory_plan.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/assert_ok.h"
#include "tests/support/late_device.h"
#include "tests/support/slow_files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_job.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;

const OpenWorkload kOnHost = step_workload(kStepTrain, kStepTest),
                   kOnDevice = late_workload(kStepTrain, kStepTest);

std::vector<OpenWorkload> on_devices(std::size_t world) {
  return std::vector<OpenWorkload>(world, kOnDevice);
}

v1::TrainingSpec adam_spec(std::int64_t steps) {
  v1::TrainingSpec spec = step_spec(steps, 32);
  spec.mutable_optimizer()->set_type(v1::OptimizerSpec::ADAM);
  spec.mutable_optimizer()->set_beta1(0.9);
  spec.mutable_optimizer()->set_beta2(0.999);
  spec.mutable_optimizer()->set_epsilon(1e-8);
  return spec;
}

TEST(DeviceTraining, HasTheWeightsOfTheHostsAtEveryStep) {
  v1::TrainingSpec spec = step_spec(30, 32);
  spec.mutable_evaluation()->set_every_steps(7);
  const Hashes host = train({kOnHost}, spec);
  ASSERT_EQ(host.size(), 31u);
  for (const std::size_t world : {1U, 2U, 3U, 4U}) EXPECT_EQ(train(on_devices(world), spec), host) << world;
}

TEST(DeviceTraining, UnevenSharesEvenEmptyOnesAndMicroBatchesChangeNothing) {
  v1::TrainingSpec spec = step_spec(20, 32);
  const Hashes host = train({kOnHost}, spec);
  EXPECT_EQ(train(on_devices(3), spec, {0.5, 0.3, 0.2}), host);
  EXPECT_EQ(train(on_devices(2), spec, {1.0, 0.0}), host);
  for (const std::int64_t micro : {1, 3, 8}) {
    spec.set_micro_batch_size(micro);
    EXPECT_EQ(train(on_devices(2), spec), host) << "micro-batches of " << micro;
  }
  spec.mutable_exchange()->set_overlap(false);
  EXPECT_EQ(train(on_devices(2), spec), host);
}

// Only some have such a device: all train on their hosts, and nobody makes a state elsewhere.
TEST(DeviceTraining, IsTheHostsWhereOneMemberHasNoOtherMemory) {
  const v1::TrainingSpec spec = step_spec(12, 32);
  int made = 0;
  const OpenWorkload counting = [&](const v1::TrainingSpec& of) -> absl::StatusOr<Workload> {
    auto workload = kOnDevice(of);
    workload->make_state = [&made, make = workload->make_state](const auto& optimizer, const auto& layout) {
      ++made;
      return make(optimizer, layout);
    };
    return workload;
  };
  const Hashes host = train({kOnHost}, spec);
  EXPECT_EQ(train({counting, kOnHost}, spec), host);
  EXPECT_EQ(made, 0);
  EXPECT_EQ(train({counting}, spec), host);
  EXPECT_EQ(made, 1);
}

// Before anything of it is made; each member counts those on its own device.
TEST(DeviceTraining, AStateThatFindsNoRoomIsToldWithItsDevicesMembers) {
  for (const auto& [room, ending] :
       {std::pair{std::size_t{40} << 20, Ending::kFinished}, {1000, Ending::kFailed}}) {
    ThreadJob job(3, step_spec(4, 32), kOnDevice);
    std::atomic<int> made = 0;
    for (int rank = 0; rank < 3; ++rank) {
      const auto roomy = [&, rank, free = room](const v1::TrainingSpec& of) -> absl::StatusOr<Workload> {
        auto workload = kOnDevice(of);
        workload->room = [free] { return tensor::MemoryRoom{free, std::size_t{64} << 20}; };
        workload->room_at_begin.free_bytes = std::size_t{50} << 20;
        workload->device_id = rank < 2 ? "GPU-a" : "GPU-b";
        workload->make_state = [&made, make = workload->make_state](const auto& optimizer,
                                                                    const auto& layout) {
          ++made;
          return make(optimizer, layout);
        };
        return workload;
      };
      job.member(rank).workload = roomy;
    }
    job.run_view({0, 1, 2});
    EXPECT_EQ(made, ending == Ending::kFinished ? 3 : 0);
    for (int rank = 0; rank < 3; ++rank) {
      const Outcome& outcome = job.member(rank).outcome;
      EXPECT_EQ(outcome.ending, ending) << outcome.error;
      if (ending == Ending::kFinished) continue;
      const std::string message(outcome.error.message());
      EXPECT_TRUE(outcome.configuration);
      EXPECT_THAT(
          message,
          HasSubstr(
              "weights and gradient find no room in the device's memory (out of memory): they need 1 MiB"));
      EXPECT_THAT(message, HasSubstr("50 MiB were free when this member began"));
      EXPECT_EQ(message.find("2 members of this job share the device") != std::string::npos, rank < 2)
          << message;
    }
  }
}

// Its passes run behind the host, also where others have no such device.
TEST(DeviceTraining, PartialStepsAreRefusedBeforeTheFirstView) {
  v1::TrainingSpec spec = step_spec(4, 32);
  spec.set_micro_batch_size(4);
  spec.mutable_exchange()->set_max_drop_rate(0.1);
  ThreadJob job(1, spec, kOnDevice);
  job.run();
  const Outcome& outcome = job.member(0).outcome;
  EXPECT_EQ(outcome.ending, Ending::kFailed);
  EXPECT_TRUE(outcome.configuration);
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.error)) << outcome.error;
}

TEST(DeviceTraining, CopiesOfTheHostsStateThatFindNoRoomAreTold) {
  ThreadJob job(1, step_spec(4, 32), kOnDevice);
  job.member(0).workload = [](const v1::TrainingSpec& of) -> absl::StatusOr<Workload> {
    auto workload = kOnHost(of);
    workload->room = [] { return tensor::MemoryRoom{0, 1000}; };
    return workload;
  };
  job.run_view({0});
  EXPECT_THAT(std::string(job.member(0).outcome.error.message()),
              HasSubstr("weights and gradient find no room"));
}

// Codes that a peer's end has, too: nobody else is asked what became of it.
TEST(DeviceTraining, ADevicesErrorWhilePassesAreCompiledIsThisMembersOwn) {
  v1::TrainingSpec spec = step_spec(4, 32);
  spec.mutable_evaluation()->set_every_steps(2);
  spec.mutable_evaluation()->set_batch_size(16);
  for (const Purpose purpose : {Purpose::kTraining, Purpose::kEvaluation}) {
    for (const auto code : {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded}) {
      ThreadJob job(1, spec, kOnHost);
      job.member(0).workload = [=](const v1::TrainingSpec& of) -> absl::StatusOr<Workload> {
        auto workload = kOnDevice(of);
        workload->room = [] { return tensor::MemoryRoom{std::size_t{40} << 20, std::size_t{64} << 20}; };
        workload->compile =
            [=, first = true, compile = workload->compile](
                Purpose which, std::int64_t rows,
                const tensor::LeftRoom& leave) mutable -> absl::StatusOr<std::unique_ptr<tensor::Program>> {
          if (rows == 16 && std::exchange(first, false)) return absl::ResourceExhaustedError("7 fit");
          if (which == purpose && rows > 1) return absl::Status(code, "the GPU is lost");
          return compile(which, rows, leave);
        };
        return workload;
      };
      job.run_view({0});
      const Outcome& outcome = job.member(0).outcome;
      EXPECT_EQ(outcome.ending, Ending::kFailed);
      EXPECT_EQ(outcome.error, absl::InternalError("this member's device failed: the GPU is lost"));
    }
  }
}

TEST(DeviceTraining, EvaluationThatFindsNoRoomAtFirstIsCompiledLast) {
  v1::TrainingSpec spec = step_spec(4, 32);
  spec.mutable_evaluation()->set_every_steps(2);
  spec.mutable_evaluation()->set_batch_size(16);
  const Hashes host = train({kOnHost}, spec);
  struct Compiled {
    Purpose purpose;
    std::int64_t rows;
    std::size_t left;
    bool operator==(const Compiled&) const = default;
  };
  constexpr std::size_t kVector = 48 * sizeof(float);
  for (const bool on_device : {true, false}) {
    for (const int refusals : {1, 2}) {
      ThreadJob job(1, spec, kOnHost);
      std::vector<Compiled> compiled;
      job.member(0).workload = [&, left = refusals](const v1::TrainingSpec& of) -> absl::StatusOr<Workload> {
        auto workload = (on_device ? kOnDevice : kOnHost)(of);
        workload->room = [] { return tensor::MemoryRoom{std::size_t{40} << 20, std::size_t{64} << 20}; };
        workload->compile =
            [&compiled, left, compile = workload->compile](
                Purpose purpose, std::int64_t rows,
                const tensor::LeftRoom& leave) mutable -> absl::StatusOr<std::unique_ptr<tensor::Program>> {
          compiled.push_back({purpose, rows, leave.bytes});
          if (rows == 16 && left-- > 0) return absl::ResourceExhaustedError("7 fit");
          return compile(purpose, rows, leave);
        };
        return workload;
      };
      job.run_view({0});
      // Copies of weights for both programs, and of the gradient, are taken when a first pass needs them.
      const std::size_t later = on_device ? 0 : 3 * kVector;
      EXPECT_EQ(compiled, (std::vector<Compiled>{{Purpose::kEvaluation, 16, 0},
                                                 {Purpose::kEvaluation, 1, 0},
                                                 {Purpose::kTraining, 32, later},
                                                 {Purpose::kEvaluation, 16, later}}));
      const auto& member = job.member(0);
      if (refusals == 1) {
        EXPECT_EQ(member.outcome.ending, Ending::kFinished) << member.outcome.error;
        EXPECT_EQ(member.hashes, host);
        continue;
      }
      EXPECT_EQ(member.outcome.ending, Ending::kFailed);
      EXPECT_TRUE(member.outcome.configuration);
      EXPECT_EQ(member.outcome.error.message(),
                "evaluation finds no room (out of memory): 7 fit; set training.evaluation.batchSize to what "
                "fits: what training takes has its room already");
    }
  }
}

TEST(DeviceTraining, ARunGoesOnOnTheOtherKindOfMemory) {
  for (const auto& [first, second] : {std::pair{on_devices(2), std::vector{kOnHost}},
                                      {{kOnHost, kOnHost}, on_devices(1)},
                                      {on_devices(1), on_devices(3)}}) {
    const TemporaryFolder folder;
    v1::TrainingSpec spec = adam_spec(24);
    const Hashes unbroken = train({kOnHost}, spec);
    save_in(spec, folder.path(), 5);
    spec.set_steps(10);
    train(first, spec);
    spec.set_steps(24);
    spec.mutable_checkpoint()->set_resume(true);
    const Hashes rest = train(second, spec);
    EXPECT_EQ(rest.begin()->first, 10);
    for (const auto& [step, hash] : rest) EXPECT_EQ(hash, unbroken.at(step)) << "step " << step;
  }
}

TEST(DeviceTraining, TheModelIsThatOfTheHost) {
  const auto model_of = [](const OpenWorkload& workload) {
    const TemporaryFolder folder;
    v1::TrainingSpec spec = adam_spec(9);
    spec.mutable_checkpoint()->set_model_directory(folder.path());
    train({workload}, spec);
    const auto model = checkpoint::read_model(folder.path() + "/model.safetensors");
    EXPECT_TRUE(model.ok()) << model.status();
    std::vector<std::vector<std::byte>> tensors;
    for (const auto& tensor : model->tensors) tensors.emplace_back(tensor.data.begin(), tensor.data.end());
    return tensors;
  };
  EXPECT_EQ(model_of(kOnDevice), model_of(kOnHost));
}

// A view that broke is followed by one of a member fewer, then by one with a member that has no such memory
// and nothing trained: the state goes to the host, and from there to it. When that one has gone, the state
// goes to the devices again, where no copies of the host's are left.
TEST(DeviceTraining, LostAndNewMembersChangeNothing) {
  const v1::TrainingSpec spec = adam_spec(40);
  const Hashes unbroken = train({kOnHost}, spec);
  ThreadJob job(4, spec, kOnDevice);
  job.member(3).workload = kOnHost;
  job.send_view(job.view(1, {0, 1, 2}));
  auto& lost = job.member(1);
  lost.at_step(10, [&] { lost.membership->end(absl::AbortedError("evicted by the test")); });
  job.go_on_in(job.view(2, {0, 2}), {0, 2});
  job.member(3).membership->send_view(v1::View());
  job.member(0).at_step(20, [&] {
    const v1::View last = job.view(3, {0, 2, 3});
    job.member(0).membership->drain(Generation{2});
    for (const int rank : {0, 2, 3}) job.member(rank).membership->offer_view(last);
  });
  job.member(0).at_step(30, [&] {
    const v1::View without = job.view(4, {0, 2});
    job.member(0).membership->drain(Generation{3});
    for (const int rank : {0, 2}) job.member(rank).membership->offer_view(without);
  });
  job.member(0).at_step(36, [&] { job.member(3).membership->end(absl::AbortedError("nobody needs it")); });
  job.run();
  EXPECT_EQ(lost.outcome.ending, Ending::kEnded);
  for (const int rank : {0, 2, 3}) {
    const auto& member = job.member(rank);
    EXPECT_EQ(member.outcome.ending, rank == 3 ? Ending::kEnded : Ending::kFinished) << member.outcome.error;
    for (const auto& [step, hash] : member.hashes) EXPECT_EQ(hash, unbroken.at(step)) << "step " << step;
  }
  EXPECT_EQ(job.member(0).hashes, unbroken);
  EXPECT_GE(job.member(3).hashes.begin()->first, 20);
  EXPECT_LT(job.member(3).hashes.rbegin()->first, 36);
}

// ---- checkpoints while training goes on

// Holds up the writing of the first checkpoint until the training has come to a step.
class HeldUp {
 public:
  HeldUp(ThreadJob& job, Step until) : member_(job.member(0)) {
    member_.options.on_hash = [this, heard = member_.options.on_hash](Step step, std::uint64_t hash) {
      heard(step, hash);
      at_ = step;
      saving_[step] = member_.stop.saving();
    };
    files_.before_create = [this, until](const std::string& path) {
      if (path.find("state") == std::string::npos || held_.exchange(true)) return absl::OkStatus();
      const SystemClock clock;
      const Deadline limit = Deadline::after(clock.now(), std::chrono::seconds(20));
      while (at_ < until && !limit.expired(clock.now())) std::this_thread::yield();
      return result;
    };
    member_.files = &files_;
  }
  bool was_saving(Step step) const { return saving_.at(step); }
  absl::Status result;

 private:
  ThreadJob::Member& member_;
  std::atomic<Step> at_{0};
  std::atomic<bool> held_{false};
  std::map<Step, bool> saving_;
  SlowFiles files_;
};

TEST(DeviceSaves, TrainingGoesOnWhileACheckpointIsWritten) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = adam_spec(14);
  const Hashes unbroken = train({kOnHost}, spec);
  save_in(spec, folder.path(), 4);
  spec.mutable_checkpoint()->set_keep(9);
  ThreadJob job(2, spec, kOnDevice);
  HeldUp files(job, 9);
  job.run_view({0, 1});
  EXPECT_EQ(job.member(0).outcome.ending, Ending::kFinished) << job.member(0).outcome.error;
  EXPECT_EQ(job.member(0).hashes, unbroken);
  EXPECT_FALSE(files.was_saving(3));
  for (const Step step : {5, 6, 7, 8}) EXPECT_TRUE(files.was_saving(step)) << step;
  EXPECT_FALSE(job.member(0).stop.saving());
  // That of step 8 was due while the first was written: it was not taken before its end.
  const auto saved = job.member(0).membership->checkpoints();
  ASSERT_GE(saved.size(), 2U);
  EXPECT_EQ(saved[0].step(), 4);
  EXPECT_GE(saved[1].step(), 9);
  EXPECT_EQ(saved.back().step(), 14);
  for (const auto& each : saved) {
    EXPECT_EQ(each.error(), "");
    EXPECT_GT(each.bytes(), 3U * 40 * sizeof(float));
  }

  // What was written is the state of its step, whatever was trained meanwhile.
  for (const auto& each : saved) {
    if (each.step() != 4) std::filesystem::remove_all(each.path());
  }
  spec.mutable_checkpoint()->set_resume(true);
  const Hashes rest = train({kOnHost}, spec);
  EXPECT_EQ(rest.begin()->first, 4);
  for (const auto& [step, hash] : rest) EXPECT_EQ(hash, unbroken.at(step)) << "step " << step;
}

TEST(DeviceSaves, OneThatFailsIsToldAndTrainingGoesOn) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = adam_spec(12);
  save_in(spec, folder.path(), 4);
  ThreadJob job(1, spec, kOnDevice);
  HeldUp files(job, 6);
  files.result = absl::ResourceExhaustedError("no space left");
  job.run_view({0});
  EXPECT_EQ(job.member(0).outcome.ending, Ending::kFinished) << job.member(0).outcome.error;
  const auto saved = job.member(0).membership->checkpoints();
  ASSERT_GE(saved.size(), 2U);
  EXPECT_EQ(saved[0].step(), 4);
  EXPECT_THAT(saved[0].error(), HasSubstr("no space left"));
  EXPECT_EQ(saved.back().step(), 12);
  EXPECT_EQ(saved.back().error(), "");
}

// The next view may need the host's memory that is being written: it is waited for.
TEST(DeviceSaves, AViewThatBreaksMeanwhileLosesNothing) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = adam_spec(20);
  const Hashes unbroken = train({kOnHost}, spec);
  save_in(spec, folder.path(), 6);
  ThreadJob job(3, spec, kOnDevice);
  job.member(2).workload = kOnHost;
  HeldUp files(job, 8);
  auto& lost = job.member(1);
  lost.at_step(8, [&] { lost.membership->end(absl::AbortedError("evicted by the test")); });
  auto* membership = job.member(0).membership.get();
  membership->on_fault = [&](const v1::PeerFault&) {
    const v1::View next = job.view(2, {0, 2});  // with a member that knows no device: the state leaves it
    for (const int rank : {0, 2}) job.member(rank).membership->send_view(next);
  };
  for (const int rank : {0, 1}) job.member(rank).membership->send_view(job.view(1, {0, 1}));
  job.run();
  for (const int rank : {0, 2}) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
    for (const auto& [step, hash] : job.member(rank).hashes) EXPECT_EQ(hash, unbroken.at(step)) << step;
  }
  const auto saved = job.member(0).membership->checkpoints();
  ASSERT_FALSE(saved.empty());
  EXPECT_EQ(saved[0].step(), 6);
  EXPECT_EQ(saved[0].error(), "");
}

// Gradients from device to device, where all members' can.
class DeviceExchangeTest : public ::testing::Test {
 protected:
  const OpenWorkload exchanging_ =
      late_workload(kStepTrain, kStepTest, [this](exchange::DeviceExchangeParts parts, Deadline) {
        ++opened_;
        return absl::StatusOr<exchange::DeviceExchange>(
            {std::make_unique<LateExchange>(std::move(parts)), ""});
      });
  const OpenWorkload refused_ = late_workload(
      kStepTrain, kStepTest,
      [this](const exchange::DeviceExchangeParts&, Deadline) -> absl::StatusOr<exchange::DeviceExchange> {
        ++opened_;
        return absl::FailedPreconditionError("rank 0 and rank 1 have the same GPU");
      });
  std::atomic<int> opened_{0};
};

TEST_F(DeviceExchangeTest, HasTheWeightsOfTheHostsAtEveryStep) {
  v1::TrainingSpec spec = step_spec(20, 32);
  const Hashes host = train({kOnHost}, spec);
  EXPECT_EQ(train({exchanging_}, spec), host);
  EXPECT_EQ(opened_, 0) << "who is alone needs none";
  EXPECT_EQ(train({exchanging_, exchanging_, exchanging_}, spec), host);
  EXPECT_EQ(opened_, 3);
  EXPECT_EQ(train({exchanging_, exchanging_}, spec, {1.0, 0.0}), host);
  spec.set_micro_batch_size(3);
  EXPECT_EQ(train({exchanging_, exchanging_}, spec), host);
}

TEST_F(DeviceExchangeTest, GoesByWayOfTheHostsWhereDevicesCanNotAllDoIt) {
  const v1::TrainingSpec spec = step_spec(12, 32);
  const Hashes host = train({kOnHost}, spec);
  EXPECT_EQ(train({exchanging_, kOnDevice}, spec), host);
  EXPECT_EQ(train({kOnHost, exchanging_}, spec), host);
  EXPECT_EQ(opened_, 0);
  EXPECT_EQ(train({refused_, refused_}, spec), host);
  EXPECT_EQ(opened_, 2);
}

TEST_F(DeviceExchangeTest, GoesByWayOfTheHostsWhereMembersShareADevice) {
  const v1::TrainingSpec spec = step_spec(12, 32);
  const Hashes host = train({kOnHost}, spec);
  const auto on = [this](const char* name) -> OpenWorkload {
    return [this, name](const v1::TrainingSpec& of) -> absl::StatusOr<Workload> {
      auto workload = exchanging_(of);
      workload->device_id = name;
      return workload;
    };
  };
  EXPECT_EQ(train({on("GPU-1"), on("GPU-2"), on("GPU-1")}, spec), host);
  EXPECT_EQ(opened_, 0);
  EXPECT_EQ(train({on("GPU-1"), on("GPU-2")}, spec), host);
  EXPECT_EQ(opened_, 2);
}

// Whatever way gradients go, and however long members wait for each other: a pass is its own work, and so is
// an update. The last step is not read any more.
TEST_F(DeviceExchangeTest, HowLongDevicesAreAtAStepIsMeasured) {
  constexpr std::int64_t kSteps = 12;
  v1::TrainingSpec spec = step_spec(kSteps, 32);
  spec.mutable_evaluation()->set_every_steps(5);
  const auto exchange = [](exchange::DeviceExchangeParts parts, Deadline) {
    return absl::StatusOr<exchange::DeviceExchange>({std::make_unique<LateExchange>(std::move(parts)), ""});
  };
  using Sums = tensor::DeviceTimer::Sums;
  for (const exchange::OpenDeviceExchange& open : {exchange::OpenDeviceExchange(exchange), {nullptr}}) {
    for (const std::size_t world : {1U, 3U}) {
      for (const int passes : {1, 4}) {
        SCOPED_TRACE(str_cat(open ? "by devices, " : "by hosts, ", world, " members, ", passes, " passes"));
        spec.set_micro_batch_size(passes == 1 ? 0 : world == 1 ? 8 : 3);
        std::vector<std::shared_ptr<Sums>> sums;
        std::vector<OpenWorkload> members;
        for (std::size_t i = 0; i < world; ++i)
          members.push_back(late_workload(kStepTrain, kStepTest, open,
                                          {.sums = sums.emplace_back(std::make_shared<Sums>())}));
        train(members, spec);
        for (const auto& each : sums) {
          const tensor::DeviceTimeSums told = *each->lock();
          EXPECT_GE(told.steps, kSteps - 2);
          EXPECT_LE(told.steps, kSteps);
          EXPECT_EQ(told.not_measured, 0);
          EXPECT_EQ(told.times.passes, told.steps * passes * std::chrono::milliseconds(2));
          EXPECT_EQ(told.times.update, told.steps * std::chrono::milliseconds(1));
        }
      }
    }
  }
}

// A host meets an update in the passes behind it: here they are all that the device is not at, and it is.
TEST_F(DeviceExchangeTest, WaitOfPassesCountsAsTheUpdateBeforeThem) {
  const auto steps_of = [](const OpenWorkload& workload) {
    ThreadJob job(1, step_spec(12, 32), workload);
    job.run_view({0});
    EXPECT_EQ(job.member(0).outcome.ending, Ending::kFinished) << job.member(0).outcome.error;
    v1::Heartbeat heartbeat;
    job.member(0).membership->progress().collect(&heartbeat);
    EXPECT_EQ(heartbeat.step_times_size(), 12);
    return std::vector<v1::StepTimes>(heartbeat.step_times().begin(), heartbeat.step_times().end());
  };
  // The loop's own work stays, in which the machine may do something else.
  const auto is_update = [](const v1::StepTimes& step) { return step.compute_ns() < step.update_ns(); };
  const std::chrono::hours kLong(1);
  const auto met = steps_of(late_workload(kStepTrain, kStepTest, nullptr, {.piece = {}, .update = kLong}));
  EXPECT_TRUE(std::ranges::any_of(met, is_update));
  const auto computed =
      steps_of(late_workload(kStepTrain, kStepTest, nullptr, {.piece = kLong, .update = kLong}));
  EXPECT_FALSE(std::ranges::all_of(computed, is_update)) << "the passes themselves are as long";
  EXPECT_GT(steps_of(kOnHost).back().compute_ns(), 0);
}

// The members of a view that broke have new links in the next.
TEST_F(DeviceExchangeTest, EachViewHasItsOwn) {
  const v1::TrainingSpec spec = adam_spec(40);
  const Hashes unbroken = train({kOnHost}, spec);
  ThreadJob job(3, spec, exchanging_);
  job.send_view(job.view(1, {0, 1, 2}));
  auto& lost = job.member(1);
  lost.at_step(10, [&] { lost.membership->end(absl::AbortedError("evicted by the test")); });
  job.go_on_in(job.view(2, {0, 2}), {0, 2});
  job.run();
  EXPECT_EQ(opened_, 3 + 2);
  EXPECT_EQ(lost.outcome.ending, Ending::kEnded);
  for (const int rank : {0, 2}) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
    EXPECT_EQ(job.member(rank).hashes, unbroken);
  }
}

// What one alone can't open is no member's end, whatever its error is; the next view tries again.
TEST_F(DeviceExchangeTest, FailedOpeningOfOneSendsAllByWayOfTheHosts) {
  const v1::TrainingSpec spec = step_spec(12, 32);
  const Hashes host = train({kOnHost}, spec);
  for (const absl::Status& error :
       {absl::UnavailableError("a system error"), absl::InternalError("no shared memory"),
        absl::InvalidArgumentError("invalid usage"), absl::DeadlineExceededError("still in progress"),
        absl::ResourceExhaustedError("no descriptors"),
        absl::FailedPreconditionError("another generation")}) {
    const OpenWorkload failing =
        late_workload(kStepTrain, kStepTest,
                      [this, error](const exchange::DeviceExchangeParts&,
                                    Deadline) -> absl::StatusOr<exchange::DeviceExchange> {
                        ++opened_;
                        return error;
                      });
    opened_ = 0;
    EXPECT_EQ(train({exchanging_, failing, exchanging_}, spec), host) << error;
    EXPECT_EQ(train({failing, exchanging_}, spec), host) << error;
    EXPECT_EQ(train({failing, failing}, spec), host) << error;
    EXPECT_EQ(opened_, 3 + 2 + 2);
  }
}

// Nor are links of its own that can't be made.
TEST_F(DeviceExchangeTest, LinksThatOneCanNotMakeForItGoByWayOfTheHostsForAll) {
  const v1::TrainingSpec spec = step_spec(12, 32);
  const Hashes host = train({kOnHost}, spec);
  ThreadJob job(2, spec, exchanging_);
  job.member(1).fabric->refuses = [calls = 0](const collective::Group&) mutable {
    return ++calls == 2 ? absl::ResourceExhaustedError("too many open files") : absl::OkStatus();
  };
  job.run_view({0, 1});
  EXPECT_EQ(opened_, 1);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
    EXPECT_EQ(job.member(rank).hashes, host);
  }
}

// A member that is lost while it opens is lost, though it could not have opened either; and so is one whose
// device is.
TEST_F(DeviceExchangeTest, LossDuringOpeningIsALoss) {
  const v1::TrainingSpec spec = step_spec(12, 32);
  const Hashes host = train({kOnHost}, spec);
  for (const bool device : {false, true}) {
    SCOPED_TRACE(device ? "its device" : "the member");
    ThreadJob job(2, spec, exchanging_);
    auto& lost = job.member(1);
    lost.workload = late_workload(
        kStepTrain, kStepTest,
        [&](exchange::DeviceExchangeParts parts, Deadline) -> absl::StatusOr<exchange::DeviceExchange> {
          if (device) {
            static_cast<LateQueue&>(parts.queue).add([] {
              return absl::UnavailableError("the GPU is lost");
            });
          } else {
            lost.membership->end(absl::AbortedError("evicted by the test"));
          }
          return absl::InternalError("NCCL failed");
        });
    job.member(0).membership->on_fault = [&job](const v1::PeerFault&) {
      job.member(0).membership->send_view(job.view(2, {0}));
    };
    job.run_view({0, 1});
    EXPECT_EQ(lost.outcome.ending, device ? Ending::kFailed : Ending::kEnded);
    EXPECT_EQ(lost.outcome.error.message(),
              device ? "this member's device failed: the GPU is lost" : "evicted by the test");
    EXPECT_EQ(job.member(0).outcome.ending, Ending::kFinished) << job.member(0).outcome.error;
    EXPECT_EQ(job.member(0).hashes, host);
    const auto faults = job.member(0).membership->faults();
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].peer_member_id(), "m1");
  }
}

// A device tells late that a gradient was not finite: nothing is saved that counts the step as taken.
TEST(DeviceTraining, LateDeviceErrorIsReportedBeforeTheStateIsUsed) {
  v1::TrainingSpec spec = step_spec(8, 32);
  spec.mutable_optimizer()->set_clip_norm(1);
  PL_ASSERT_OK(workload, kOnDevice(spec));
  PL_ASSERT_OK(program, workload->compile(Purpose::kTraining, 4, {}));
  PL_ASSERT_OK(arena, transport::Arena::create(std::size_t{1} << 20));
  PL_ASSERT_OK(replica, Replica::create(spec, **program, **arena));
  ASSERT_TRUE((*replica)->to_device(workload->make_state).ok());
  (*replica)->on_device()->vectors().gradients[3] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE((*replica)->update(0.5).ok());
  for (const absl::Status& told : {(*replica)->snapshot().status(), (*replica)->hash().status(),
                                   (*replica)->update(0.5), (*replica)->leave_device()}) {
    EXPECT_EQ(told.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(told.message()), HasSubstr("inf at optimizer step 1"));
  }
}

}  // namespace
}  // namespace paceline::trainer
