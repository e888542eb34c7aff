// The state of the test's servers; server_saves_test has what a training makes of it.

#include "runtime/trainer/server_state.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/support/server_job.h"
#include "tests/support/temporary_folder.h"

namespace paceline::trainer {
namespace {

using namespace std::chrono_literals;

class ServerStateTest : public ::testing::Test {
 protected:
  ServerStateTest() {
    save_in(spec_, folder_.path(), 100);
    replica_ = *Replica::create(spec_, StepProgram(1), fabric_.arena());
    collective::Group group;
    group.generation = Generation{1};
    group.members.resize(2);
    client_ = *servers_.connector()(fabric_, group, {.workers = 1, .servers = 1}, replica_->layout(),
                                    replica_->weights(), replica_->gradient(), clock_,
                                    Deadline::after(clock_.now(), 60s));
  }
  absl::Status give() { return state_.give(*client_, *replica_, Generation{1}, 10); }

  const SystemClock clock_{};
  const TemporaryFolder folder_;
  v1::TrainingSpec spec_ = server_spec(10, 1);
  FakeServers servers_{spec_};
  Rendezvous meeting_{clock_};
  ThreadFabric fabric_{meeting_};
  StopRequest stop_;
  ProgressFileStore files_{nullptr, stop_};
  std::unique_ptr<Replica> replica_;
  std::shared_ptr<pserver::Client> client_;
  std::vector<SaveOutcome> reports_;
  ServerState state_{spec_, clock_, stop_, files_,
                     [this](const SaveOutcome& saved) { reports_.push_back(saved); }};
};

TEST_F(ServerStateTest, NothingIsGivenWhereTheStateIsLost) {
  EXPECT_FALSE(state_.is_here());
  EXPECT_EQ(give().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(servers_.initialized().empty());
}

TEST_F(ServerStateTest, StateIsGivenOnceAndTakenBack) {
  state_.begins_with(StatePosition::after(3));
  EXPECT_TRUE(state_.is_here());
  ASSERT_TRUE(give().ok());
  ASSERT_EQ(servers_.initialized().size(), 1u);
  EXPECT_EQ(servers_.initialized()[0].start.step, 3);
  EXPECT_FALSE(state_.is_here());
  EXPECT_EQ(give().code(), absl::StatusCode::kInternal) << "the servers hold it";
  ASSERT_TRUE(state_.open(*replica_).ok());
  const absl::Status taken = state_.take(*client_, *replica_, 3, 60s);
  ASSERT_TRUE(taken.ok()) << taken;
  EXPECT_TRUE(state_.is_here());
  EXPECT_TRUE(give().ok()) << "the next view's servers get it";
  EXPECT_TRUE(reports_.empty()) << "nothing was saved";
}

TEST_F(ServerStateTest, LastSaveIsReportedAndCounted) {
  state_.begins_with(StatePosition::after(3));
  ASSERT_TRUE(give().ok());
  state_.settle();
  EXPECT_FALSE(state_.busy());
  ASSERT_TRUE(state_.open(*replica_).ok());
  state_.save_last(*client_, 4, 60s);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_TRUE(reports_[0].status.ok()) << reports_[0].status;
  EXPECT_EQ(reports_[0].step, 3) << "the servers' step, not this worker's";
  EXPECT_EQ(state_.collected_step(), 3);
  EXPECT_EQ(state_.take_stall(), reports_[0].stall);
  EXPECT_EQ(state_.take_stall(), Duration::zero());
}

TEST_F(ServerStateTest, SaveOfServersThatAreGoneIsReportedWithThisWorkersStep) {
  ASSERT_TRUE(state_.open(*replica_).ok());
  servers_.fail(1);
  state_.save_last(*client_, 4, 60s);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_EQ(reports_[0].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(reports_[0].step, 4);
  EXPECT_EQ(state_.collected_step(), 0);
}

}  // namespace
}  // namespace paceline::trainer
