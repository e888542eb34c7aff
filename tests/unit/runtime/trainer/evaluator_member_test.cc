#include "runtime/trainer/evaluator_member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "tests/support/fake_clock.h"
#include "tests/support/slow_files.h"
#include "tests/support/step_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_job.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// An evaluator in a thread of the test, which sees its heartbeats.
class Beside {
 public:
  // `files`: null for this machine's. `before`, unless null, is called before it begins.
  explicit Beside(const v1::TrainingSpec& spec, std::int64_t test_samples = 20,
                  Logger logger = Logger::none(), checkpoint::FileStore* files = nullptr,
                  const std::function<void(Beside&)>& before = nullptr)
      : logger_(std::move(logger)), membership_("e0", spec), thread_([this, test_samples, files, before] {
          if (before != nullptr) before(*this);
          EvaluatorMember member(
              {membership_, clock_, logger_, stop_, step_workload(96, test_samples), files});
          outcome_ = member.run();
        }) {}
  ~Beside() {
    if (thread_.joinable()) end(absl::AbortedError("the test is over"));
  }

  // The next evaluation that it reports.
  v1::EvaluationRecord next() {
    const SystemClock clock;
    const Deadline limit = Deadline::after(clock.now(), std::chrono::seconds(30));
    while (seen_.empty() && !limit.expired(clock.now())) {
      v1::Heartbeat beat;
      membership_.progress().collect(&beat);
      for (const auto& record : beat.evaluations()) seen_.push_back(record);
      std::this_thread::yield();
    }
    if (seen_.empty()) {
      ADD_FAILURE() << "no evaluation came";
      return {};
    }
    const v1::EvaluationRecord record = seen_.front();
    seen_.erase(seen_.begin());
    return record;
  }
  Outcome end(const absl::Status& why) {
    membership_.end(why);
    thread_.join();
    return outcome_;
  }
  Outcome wait() {
    thread_.join();
    return outcome_;
  }
  ScriptedMembership& membership() { return membership_; }
  StopRequest& stop() { return stop_; }
  FakeClock& clock() { return clock_; }

 private:
  FakeClock clock_;
  const Logger logger_;
  ScriptedMembership membership_;
  StopRequest stop_;
  Outcome outcome_;
  std::vector<v1::EvaluationRecord> seen_;
  std::jthread thread_;
};

void save(const v1::TrainingSpec& spec, Step step, float weight) {
  std::vector<float> weights(48, weight);
  checkpoint::CheckpointStore store(spec.checkpoint().directory(), 2);
  const absl::Status saved =
      store.save(StateFormat(spec).name({weights, {}}, StatePosition::after(step)).snapshot);
  ASSERT_TRUE(saved.ok()) << saved;
}

class EvaluatorMemberTest : public ::testing::Test {
 protected:
  EvaluatorMemberTest() { spec_.mutable_checkpoint()->set_directory(folder_.path()); }
  const TemporaryFolder folder_;
  v1::TrainingSpec spec_ = step_spec(100, 32);
};

TEST_F(EvaluatorMemberTest, EachNewestCheckpointIsEvaluatedAndReported) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = step_spec(100, 32);
  spec.mutable_checkpoint()->set_directory(folder.path() + "/later");  // not there yet
  Beside evaluator(spec);
  save(spec, 10, 1.0F);
  const auto first = evaluator.next();
  EXPECT_EQ(first.step(), 10);
  EXPECT_EQ(first.samples(), 20);
  save(spec, 20, 0.0F);
  const auto second = evaluator.next();
  EXPECT_EQ(second.step(), 20);
  EXPECT_NE(second.loss(), first.loss()) << "of the checkpoint's weights";
  const Outcome outcome = evaluator.end(absl::CancelledError("the job is finished"));
  EXPECT_EQ(outcome.ending, Ending::kFinished);
  EXPECT_FALSE(evaluator.membership().leaving().has_value()) << "it says nothing more";
}

// The coordinator has told that the training is over, and waits: between the look before and the job's end
// rank 0 saved its last checkpoint.
TEST_F(EvaluatorMemberTest, LastCheckpointIsEvaluatedBeforeTheEnd) {
  save(spec_, 10, 1.0F);
  std::atomic<bool> saved = false;
  Beside* self = nullptr;
  SlowFiles files([&](const std::string& path) {  // while it reads the one before
    if (!path.ends_with("step-000000010/state.safetensors") || saved.exchange(true)) return;
    save(spec_, 20, 0.0F);
    self->membership().drain(Generation{1});
  });
  std::promise<v1::Heartbeat> last;
  Beside evaluator(spec_, 20, Logger::none(), &files, [&](Beside& beside) {
    self = &beside;
    beside.membership().on_beat = [&] {
      v1::Heartbeat beat;
      beside.membership().progress().collect(&beat);
      last.set_value(beat);  // once: it says so once
    };
  });
  auto heard = last.get_future();
  ASSERT_EQ(heard.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  const v1::Heartbeat beat = heard.get();
  EXPECT_EQ(beat.phase(), v1::FINISHED);
  ASSERT_EQ(beat.evaluations_size(), 2) << "with what it says";
  EXPECT_EQ(beat.evaluations(0).step(), 10);
  EXPECT_EQ(beat.evaluations(1).step(), 20);
  EXPECT_TRUE(evaluator.membership().waits_again(3)) << "until the job is finished";
  const Outcome outcome = evaluator.end(absl::CancelledError("the job is finished"));
  EXPECT_EQ(outcome.ending, Ending::kFinished);
  EXPECT_EQ(evaluator.membership().beats(), 1);
}

// A checkpoint that can't be read does not keep the job's end waiting, nor that there is none.
TEST_F(EvaluatorMemberTest, OneThatHasNothingToEvaluateIsDoneToo) {
  for (const bool damaged : {false, true}) {
    const TemporaryFolder folder;
    v1::TrainingSpec spec = step_spec(100, 32);
    spec.mutable_checkpoint()->set_directory(folder.path());
    if (damaged) {
      save(spec, 10, 1.0F);
      std::filesystem::resize_file(folder.path() + "/step-000000010/state.safetensors", 40);
    }
    Beside evaluator(spec);
    evaluator.membership().drain(Generation{3});
    for (int looks = 0; looks < 50 && evaluator.membership().beats() == 0; ++looks) {
      EXPECT_TRUE(evaluator.membership().waits_again(1));
    }
    EXPECT_EQ(evaluator.membership().beats(), 1) << (damaged ? "a damaged one" : "none");
    v1::Heartbeat beat;
    evaluator.membership().progress().collect(&beat);
    EXPECT_EQ(beat.phase(), v1::FINISHED);
    evaluator.end(absl::CancelledError("the job is finished"));
  }
}

TEST_F(EvaluatorMemberTest, UnreadableCheckpointIsPassedOver) {
  save(spec_, 10, 1.0F);
  std::filesystem::resize_file(folder_.path() + "/step-000000010/state.safetensors", 40);
  Beside evaluator(spec_);
  save(spec_, 20, 1.0F);
  EXPECT_EQ(evaluator.next().step(), 20);
}

// Between the reading of its manifest and of its state: the two do not fit together.
TEST_F(EvaluatorMemberTest, AStepThatIsSavedAgainWhileItIsReadIsNotPassedOver) {
  save(spec_, 10, 1.0F);
  save(spec_, 20, 1.0F);
  bool again = false;
  SlowFiles files([&](const std::string& path) {
    if (again || !path.ends_with("step-000000020/state.safetensors")) return;
    again = true;
    save(spec_, 20, 0.0F);
  });
  Beside evaluator(spec_, 20, Logger::none(), &files);
  EXPECT_EQ(evaluator.next().step(), 10) << "what is whole then";
  EXPECT_EQ(evaluator.next().step(), 20);
}

TEST_F(EvaluatorMemberTest, WithoutHeldOutSamplesItSaysWhatIsMissing) {
  Beside evaluator(spec_, 0);
  const Outcome outcome = evaluator.wait();
  EXPECT_EQ(outcome.ending, Ending::kFailed);
  EXPECT_TRUE(outcome.configuration);
  EXPECT_THAT(evaluator.membership().leaving()->reason(), HasSubstr("testFraction"));
}

TEST_F(EvaluatorMemberTest, AStopEndsIt) {
  Beside evaluator(spec_);
  evaluator.stop().request();
  EXPECT_EQ(evaluator.wait().ending, Ending::kStopped);
  EXPECT_EQ(evaluator.membership().leaving()->outcome(), v1::Leaving::STOPPED);
}

// What an evaluator of a folder in which nothing is ever saved says until the job is finished.
std::string log_of_a_vain_wait(const std::string& folder, const std::function<void(Beside&)>& meanwhile,
                               checkpoint::FileStore* files = nullptr) {
  v1::TrainingSpec spec = step_spec(100, 32);
  spec.mutable_checkpoint()->set_directory(folder);
  spec.mutable_checkpoint()->set_every_steps(200);
  ::testing::internal::CaptureStderr();
  {
    Beside evaluator(spec, 20, Logger::to_stderr("evaluator-0", LogLevel::kWarning), files);
    meanwhile(evaluator);
    EXPECT_EQ(evaluator.end(absl::CancelledError("the job is finished")).ending, Ending::kFinished);
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(EvaluatorMemberTest, OneThatNeverFindsACheckpointSaysWhatItLookedForAndWhere) {
  const TemporaryFolder folder;
  const std::string log =
      log_of_a_vain_wait(folder.path(), [](Beside& e) { EXPECT_TRUE(e.membership().waits_again(2)); });
  EXPECT_THAT(log, HasSubstr("has evaluated nothing. It looks for folders step-* with a manifest.json in " +
                             folder.path() + " and finds none"));
  EXPECT_THAT(log, HasSubstr("saves there every 200 steps"));
  EXPECT_THAT(log, HasSubstr("give both templates one volume"));
  EXPECT_THAT(log, Not(HasSubstr("still waits"))) << "it did not wait for long";
}

int times(const std::string& part, const std::string& text) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Three looks, and more than a minute.
void waits_for_long(Beside& evaluator) {
  EXPECT_TRUE(evaluator.membership().waits_again(2));
  evaluator.clock().advance(std::chrono::seconds(61));
  EXPECT_TRUE(evaluator.membership().waits_again(2));
}

TEST_F(EvaluatorMemberTest, OneThatMayNotLookSaysSoOnceAndWhy) {
  const TemporaryFolder folder;
  SlowFiles files;
  files.before_list = [](const std::string& path) {
    return absl::PermissionDeniedError(str_cat("list ", path, ": Permission denied"));
  };
  const std::string log = log_of_a_vain_wait(folder.path(), waits_for_long, &files);
  const std::string why = "It may not look for checkpoints in " + folder.path() + ": list " + folder.path() +
                          ": Permission denied. Let this member read that folder";
  EXPECT_EQ(times("waits. " + why, log), 1) << log;
  EXPECT_EQ(times("has evaluated nothing. " + why, log), 1) << log;
  EXPECT_EQ(times("Permission denied", log), 2) << log;
  EXPECT_THAT(log, Not(HasSubstr("finds none")));
  EXPECT_THAT(log, Not(HasSubstr("still waits")));
}

TEST_F(EvaluatorMemberTest, AFileInThePlaceOfTheFolderIsNoFolderWithoutCheckpoints) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/checkpoints";
  std::ofstream(file) << "none";
  for (const std::string& place : {file, file + "/of-this-job"}) {
    const std::string log = log_of_a_vain_wait(place, waits_for_long);
    EXPECT_EQ(times("It may not look for checkpoints in " + place, log), 2) << log;
    EXPECT_THAT(log, HasSubstr("there is a file in the place of a folder"));
    EXPECT_THAT(log, Not(HasSubstr("finds none")));
  }
}

TEST_F(EvaluatorMemberTest, OneThatMayLookAgainGoesOn) {
  save(spec_, 10, 1.0F);
  std::atomic<bool> may = false;
  SlowFiles files;
  files.before_list = [&](const std::string&) {
    return may ? absl::OkStatus() : absl::PermissionDeniedError("not yet");
  };
  const std::string log = log_of_a_vain_wait(
      folder_.path(),
      [&](Beside& e) {
        EXPECT_TRUE(e.membership().waits_again(2));
        may = true;
        EXPECT_EQ(e.next().step(), 10);
      },
      &files);
  EXPECT_EQ(times("not yet", log), 1) << log;
  EXPECT_THAT(log, Not(HasSubstr("has evaluated nothing")));
}

TEST_F(EvaluatorMemberTest, ACheckpointThatIsBeingWrittenIsNotComplete) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/step-000000010");
  const std::string log = log_of_a_vain_wait(folder.path(), waits_for_long);
  const std::string what =
      "The newest checkpoint in " + folder.path() + ", step-000000010, is not complete: its manifest.json";
  EXPECT_EQ(times("still waits for the first checkpoint. " + what, log), 1) << log;
  EXPECT_EQ(times("has evaluated nothing. " + what, log), 1) << log;
  EXPECT_THAT(log, Not(HasSubstr("finds none")));
}

TEST_F(EvaluatorMemberTest, AManifestThatCanNotBeReadIsNotCalledMissing) {
  save(spec_, 10, 1.0F);
  std::atomic<Beside*> beside = nullptr;
  SlowFiles files;
  std::filesystem::remove(folder_.path() + "/step-000000010/manifest.json");
  files.before_open = [&](const std::string& path) {  // it comes when there is no look any more
    const bool over = beside.load() != nullptr && !beside.load()->membership().status().ok();
    return over ? absl::PermissionDeniedError(str_cat("open ", path, ": Permission denied"))
                : absl::OkStatus();
  };
  const std::string log = log_of_a_vain_wait(
      folder_.path(),
      [&](Beside& e) {
        beside = &e;
        EXPECT_TRUE(e.membership().waits_again(1));
      },
      &files);
  EXPECT_THAT(log,
              HasSubstr("has evaluated nothing. It could read no checkpoint in " + folder_.path() + ": "));
  EXPECT_THAT(log, HasSubstr("manifest.json: Permission denied"));
  EXPECT_THAT(log, Not(HasSubstr("is not there")));
}

TEST_F(EvaluatorMemberTest, AShortageThatPassesTakesNoCheckpointAway) {
  save(spec_, 10, 1.0F);
  std::atomic<bool> any_left = false;
  SlowFiles files;
  files.before_open = [&](const std::string& path) {
    return any_left ? absl::OkStatus() : absl::ResourceExhaustedError(path + ": Too many open files");
  };
  const std::string log = log_of_a_vain_wait(
      folder_.path(),
      [&](Beside& e) {
        EXPECT_TRUE(e.membership().waits_again(4));
        any_left = true;
        EXPECT_EQ(e.next().step(), 10);
      },
      &files);
  EXPECT_EQ(times("Too many open files", log), 1) << log;
  EXPECT_THAT(log, Not(HasSubstr("has evaluated nothing")));
}

TEST_F(EvaluatorMemberTest, OneThatCouldReadNoneSaysWhichItTried) {
  save(spec_, 10, 1.0F);
  std::filesystem::resize_file(folder_.path() + "/step-000000010/state.safetensors", 40);
  const std::string log = log_of_a_vain_wait(folder_.path(), waits_for_long);
  EXPECT_THAT(log, HasSubstr("has evaluated nothing. It could read no checkpoint in " + folder_.path() +
                             "; a line above says why of step-000000010"));
  EXPECT_THAT(log, HasSubstr("every checkpoint in " + folder_.path() + " is damaged"));
  EXPECT_THAT(log, Not(HasSubstr("still waits")));
  EXPECT_THAT(log, Not(HasSubstr("not complete")));
}

TEST_F(EvaluatorMemberTest, OneThatWaitsForLongSaysSoOnce) {
  const TemporaryFolder folder;
  const std::string log = log_of_a_vain_wait(folder.path(), [](Beside& e) {
    EXPECT_TRUE(e.membership().waits_again(1));
    for (int i = 0; i < 3; ++i) {
      e.clock().advance(std::chrono::seconds(61));
      EXPECT_TRUE(e.membership().waits_again(2));
    }
  });
  const std::size_t first = log.find("still waits for the first checkpoint. It looks for");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("still waits", first + 1), std::string::npos) << log;
}

TEST_F(EvaluatorMemberTest, OneThatEvaluatedHasNothingToWarnOf) {
  save(spec_, 10, 1.0F);
  const std::string log = log_of_a_vain_wait(folder_.path(), [](Beside& e) {
    EXPECT_EQ(e.next().step(), 10);
    e.clock().advance(std::chrono::seconds(61));
    EXPECT_TRUE(e.membership().waits_again(2));
  });
  EXPECT_EQ(log, "");
}

}  // namespace
}  // namespace paceline::trainer
