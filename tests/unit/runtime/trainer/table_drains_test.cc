// What a drained view with sparse tables leaves to the next one's servers, whatever happens while it is
// saved.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/click_model.h"
#include "tests/support/server_job.h"
#include "tests/support/slow_files.h"
#include "tests/support/temporary_folder.h"

namespace paceline::trainer {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Step kDrained = 10;

// One worker and one server; after step 10 its view is drained, and another with other servers follows.
class TableDrains : public ::testing::Test {
 protected:
  TableDrains() {
    chief.files = &files;
    jobs.continue_on(second);
    jobs.job.drain_at(0, kDrained, jobs.view(2, 1));
  }
  v1::TrainingSpec spec() const {
    v1::TrainingSpec spec = click_spec(30, 32, 1, 1);
    spec.mutable_checkpoint()->set_directory(folder.path());
    return spec;
  }
  std::vector<v1::CheckpointResult> told() const { return chief.membership->checkpoints(); }
  v1::MemberPhase phase() {
    v1::Heartbeat beat;
    chief.membership->progress().collect(&beat);
    return beat.phase();
  }

  const TemporaryFolder folder;
  SlowFiles files;
  ServerJob jobs{spec(), click_workload(96, 0)};
  FakeServers second{spec()};
  ThreadJob::Member& chief = jobs.job.member(0);
};

TEST_F(TableDrains, ItIsBeingSavedUntilTheLastFileIsWritten) {
  std::vector<std::string> made;
  const auto being_saved = [&] {
    EXPECT_EQ(phase(), v1::CHECKPOINTING);
    EXPECT_TRUE(chief.stop.saving()) << "a stop waits for it";
  };
  jobs.servers.before_take = [&](Deadline) { being_saved(); };
  files.before_create = [&](const std::string& path) {
    being_saved();
    made.push_back(path);
    return absl::OkStatus();
  };
  jobs.run_to_the_end();
  EXPECT_THAT(made, Contains(EndsWith("/table-wide.safetensors")));
  EXPECT_THAT(made, Contains(EndsWith("/table-deep.safetensors")));
  EXPECT_THAT(made, Contains(EndsWith("/manifest.json")));
  ASSERT_EQ(told().size(), 1u);
  EXPECT_EQ(told()[0].error(), "");
  EXPECT_EQ(second.initialized().size(), 1u);
}

// The job is stopped, or this member is out of patience: the servers are there for as long as it collects.
TEST_F(TableDrains, AnEndInTheMiddleOfItLosesNothing) {
  jobs.servers.before_take = [&](Deadline) {
    chief.membership->end(absl::AbortedError("the user stops the job"));
    chief.stop.expire();
  };
  jobs.job.run();
  EXPECT_EQ(chief.outcome.ending, Ending::kEnded) << chief.outcome.error;
  EXPECT_EQ(jobs.servers.interrupted(), 0) << "its turns are over anyway";
  const auto saved = checkpoint::CheckpointStore(folder.path(), 1).load_latest();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_GE(saved->progress.step, kDrained);
  EXPECT_EQ(chief.outcome.step, saved->progress.step);
  EXPECT_EQ(chief.outcome.checkpoint_path, folder.path() + "/" + saved->name);
}

// What could not be written once does not count as saved.
TEST_F(TableDrains, FailedSaveIsRepeatedBeforeTheEnd) {
  bool failed = false;
  files.before_create = [&](const std::string&) -> absl::Status {
    if (failed) return absl::OkStatus();
    failed = true;
    chief.membership->end(absl::AbortedError("the user stops the job"));
    return absl::UnavailableError("input/output error");
  };
  jobs.job.run();
  EXPECT_TRUE(failed);
  EXPECT_EQ(chief.outcome.ending, Ending::kEnded) << chief.outcome.error;
  const auto saved = checkpoint::CheckpointStore(folder.path(), 1).load_latest();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_GE(saved->progress.step, kDrained);
  EXPECT_NE(chief.outcome.checkpoint_path, "");
}

TEST_F(TableDrains, FailedCollectionIsReported) {
  jobs.servers.before_take = [&](Deadline) { jobs.servers.fail(1); };
  chief.membership->on_fault = [&](const v1::PeerFault&) {
    chief.membership->end(absl::AbortedError("ps-0 is gone"));
  };
  jobs.job.run();
  ASSERT_EQ(told().size(), 1u);
  EXPECT_GE(told()[0].step(), kDrained);
  EXPECT_THAT(told()[0].error(), HasSubstr("ps-0"));
  EXPECT_EQ(chief.outcome.checkpoint_path, "");
  ASSERT_EQ(chief.membership->faults().size(), 1u);
  EXPECT_EQ(chief.membership->faults()[0].peer_member_id(), "m1");
  EXPECT_THAT(second.initialized(), IsEmpty());
}

// Of a disk that fails nobody else is to blame, and the next view does not begin without the rows.
TEST_F(TableDrains, FailedDiskEndsItsOwnMember) {
  for (const char* file : {"/table-deep.safetensors", "/manifest.json"}) {
    SCOPED_TRACE(file);
    ServerJob again{spec(), click_workload(96, 0)};
    auto& member = again.job.member(0);
    member.files = &files;
    again.continue_on(second);
    again.job.drain_at(0, kDrained, again.view(2, 1));
    files.before_create = [&](const std::string& path) {
      return path.ends_with(file) ? absl::UnavailableError("input/output error") : absl::OkStatus();
    };
    again.job.run();
    EXPECT_EQ(member.outcome.ending, Ending::kFailed);
    EXPECT_THAT(std::string(member.outcome.error.message()), HasSubstr("input/output error"));
    EXPECT_THAT(member.membership->faults(), IsEmpty());
    const auto saves = member.membership->checkpoints();
    ASSERT_EQ(saves.size(), 2u) << "it tries once more before it leaves";
    EXPECT_THAT(saves[0].error(), HasSubstr("input/output error"));
    EXPECT_THAT(second.initialized(), IsEmpty());
  }
}

}  // namespace
}  // namespace paceline::trainer
