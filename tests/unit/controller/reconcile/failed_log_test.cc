// The last lines of the failed pod's log, which its node is asked for: a restart does not wait for one that
// is cut off.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Pods' logs are on their nodes, and it counts who is asked for.
class Nodes final : public OtherCluster {
 public:
  using OtherCluster::OtherCluster;
  absl::StatusOr<std::vector<cluster::Pod>> list_pods(const std::string& ns,
                                                      const std::string& job) override {
    PL_ASSIGN_OR_RETURN(std::vector<cluster::Pod> pods, OtherCluster::list_pods(ns, job));
    for (cluster::Pod& pod : pods) pod.log_path.clear();
    return pods;
  }
  absl::StatusOr<std::string> tail_log(const cluster::Pod& pod, int) override {
    asked_.lock()->push_back(pod.spec.name);
    return *answer_.lock();
  }
  Guarded<std::vector<std::string>> asked_;
  Guarded<absl::StatusOr<std::string>> answer_{std::string("last words\n")};
};

class FailedLogTest : public ReconcilerTest {
 protected:
  FailedLogTest() {
    replace_workers();
    reconciler_.emplace(nodes_, jobs_, reports_, clock_, own_queue_, limits_, Logger::none());
    bring_up();
  }
  ~FailedLogTest() override { reconciler_.reset(); }
  void judge(api::FaultKind kind) {
    auto report = reports_.report_.lock();
    (*report)->fault = api::Fault{.kind = kind, .role = Role::kWorker, .index = 0};
    (*report)->fault_age = limits_.verdict_grace;
  }
  std::vector<std::string> asked() { return *nodes_.asked_.lock(); }

  queue::WorkQueue own_queue_{clock_};  // the fixture's ends with its reconciler
  Nodes nodes_{cluster_};
};

TEST_F(FailedLogTest, AMemberThatFailedIsAsked) {
  judge(api::FaultKind::kFailed);
  pass();
  EXPECT_THAT(asked(), ElementsAre("fashion-worker-0-0"));
  EXPECT_THAT(status().message, EndsWith(":\nlast words"));
}

TEST_F(FailedLogTest, ANodeThatIsNotReadyIsNotAsked) {
  cluster_.lose_node("fashion-worker-0-0");
  judge(api::FaultKind::kFailed);
  pass();
  EXPECT_EQ(status().phase, api::Phase::kRestarting) << status().message;
  EXPECT_THAT(asked(), IsEmpty());
  EXPECT_THAT(status().message, Not(HasSubstr("last lines")));
}

TEST_F(FailedLogTest, ASilentMembersNodeIsNotAskedBeforeItsPodHasEnded) {
  cluster_.end_deleted_at_once(false);
  for (const auto kind : {api::FaultKind::kDead, api::FaultKind::kFrozen, api::FaultKind::kUnreachable}) {
    *jobs_.failure_.lock() = absl::UnavailableError("the API server is away");  // so that it is judged again
    judge(kind);
    EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
    EXPECT_THAT(asked(), IsEmpty()) << static_cast<int>(kind);
  }
  cluster_.kill("fashion-worker-0-0", SIGKILL);
  *jobs_.failure_.lock() = absl::OkStatus();
  judge(api::FaultKind::kFrozen);
  pass();
  EXPECT_THAT(asked(), ElementsAre("fashion-worker-0-0"));
}

TEST_F(FailedLogTest, APassThatIsRepeatedAsksForTheSameLogNoMore) {
  *nodes_.answer_.lock() = absl::DeadlineExceededError("the node does not answer");
  *jobs_.failure_.lock() = absl::UnavailableError("the API server is away");
  cluster_.end_deleted_at_once(false);
  judge(api::FaultKind::kFailed);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_THAT(asked(), ElementsAre("fashion-worker-0-0"));
  *nodes_.answer_.lock() = "last words\n";
  cluster_.kill("fashion-worker-0-0", SIGKILL);
  EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_THAT(asked(), ElementsAre("fashion-worker-0-0", "fashion-worker-0-0")) << "it has ended by now";
  *jobs_.failure_.lock() = absl::OkStatus();
  pass();
  EXPECT_EQ(asked().size(), 2u);
  EXPECT_EQ(status().phase, api::Phase::kRestarting);
  EXPECT_THAT(status().message, EndsWith(":\nlast words"));
}

}  // namespace
}  // namespace paceline::reconcile
