// How long members of an all-reduce wait for what rank 0 loads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/trainer/limits.h"
#include "tests/support/fake_clock.h"
#include "tests/support/slow_files.h"
#include "tests/support/step_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_job.h"
#include "tests/unit/runtime/trainer/call_teller.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;

// Two members go on from checkpoints of steps 2, 4, 6 and 8, the last three of which turn out to be damaged
// when all of them was read.
class LoadWaits : public ::testing::Test {
 protected:
  void SetUp() override {
    spec_ = step_spec(8, 32);
    save_in(spec_, folder_.path(), 2);
    spec_.mutable_checkpoint()->set_keep(4);
    ThreadJob first(1, spec_, step_workload(kStepTrain, kStepTest));
    first.send_view(first.view(1, {0}));
    first.run();
    for (const int step : {4, 6, 8}) {
      const std::string file = str_cat(folder_.path(), "/step-00000000", step, "/state.safetensors");
      ASSERT_TRUE(std::filesystem::exists(file));
      std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
      damaged.seekp(-1, std::ios::end);
      damaged.put('\x7f');
    }
    spec_.mutable_checkpoint()->set_resume(true);
    job_ = std::make_unique<ThreadJob>(2, spec_, step_workload(kStepTrain, kStepTest), &clock_);
    job_->member(0).files = &files_;
    job_->member(1).fabric->wrap = [this](std::unique_ptr<collective::Communicator> links) {
      return std::make_unique<CallTeller>(std::move(links), [this](collective::Kind kind, Deadline deadline) {
        const std::lock_guard lock(mutex_);
        const bool waits = kind == collective::Kind::kBroadcast;  // before that, all say what they hold
        loaded_ |= !waits && !ends_.empty();
        if (waits && !loaded_) ends_.push_back(deadline.at());
      });
    };
    job_->send_view(job_->view(1, {0, 1}));
  }
  // Of member 1's waits until rank 0 has loaded.
  std::vector<TimePoint> ends() {
    const std::lock_guard lock(mutex_);
    return ends_;
  }
  static bool wait_until(const std::function<bool()>& condition) {
    const SystemClock clock;
    const Deadline limit = Deadline::after(clock.now(), std::chrono::seconds(20));
    while (!condition() && !limit.expired(clock.now())) std::this_thread::yield();
    return condition();
  }

  const TemporaryFolder folder_;
  v1::TrainingSpec spec_;
  FakeClock clock_;
  std::function<void()> on_read_;  // in rank 0's thread, before a file is read
  SlowFiles files_{[this](const std::string&) { on_read_(); }};
  std::mutex mutex_;
  bool loaded_ = false;
  std::vector<TimePoint> ends_;
  std::unique_ptr<ThreadJob> job_;
};

// A manifest and a state of four checkpoints, ten minutes each.
TEST_F(LoadWaits, ALoadThatMovesIsWaitedForHoweverLongItTakes) {
  const TimePoint start = clock_.now();
  constexpr Duration kRead = std::chrono::minutes(10);
  static_assert(2 * kRead < kLoadLimit && 8 * kRead > 2 * kLoadLimit);
  on_read_ = [&] {
    EXPECT_TRUE(wait_until([&] { return !ends().empty(); }));
    clock_.advance(kRead);
  };
  job_->run();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job_->member(rank).outcome.ending, Ending::kFinished) << job_->member(rank).outcome.error;
    EXPECT_EQ(job_->member(rank).hashes.begin()->first, 2);
  }
  const std::vector<TimePoint> ends = this->ends();
  ASSERT_EQ(ends.size(), 5u) << "a word for each state that was read, and one when it was loaded";
  EXPECT_EQ(ends.front(), start + kLoadLimit);
  EXPECT_EQ(ends.back(), start + 8 * kRead + kLoadLimit);
}

TEST_F(LoadWaits, StalledLoaderIsNamedWithItsFolder) {
  auto& late = *job_->member(0).membership;
  auto& waits = *job_->member(1).membership;
  on_read_ = [&] {
    EXPECT_TRUE(wait_until([&] { return !ends().empty(); }));
    clock_.advance(kLoadLimit);
    EXPECT_TRUE(wait_until([&] { return !waits.faults().empty(); }));
    for (auto* membership : {&late, &waits}) membership->end(absl::AbortedError("the job is over"));
    on_read_ = [] {};
  };
  job_->run();
  ASSERT_EQ(waits.faults().size(), 1u);
  EXPECT_EQ(waits.faults()[0].peer_member_id(), "m0");
  EXPECT_THAT(waits.faults()[0].reason(),
              HasSubstr("rank 0 (worker-0) has read nothing of the checkpoints in " + folder_.path() +
                        " for 30 min"));
}

}  // namespace
}  // namespace paceline::trainer
