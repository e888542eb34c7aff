// The last lines of the blamed pod's log, which its node is asked for: a restart does not wait for one that
// is cut off.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Pods' logs are on their nodes, and it counts who is asked for.
class Nodes final : public cluster::Cluster {
 public:
  explicit Nodes(testing::FakeCluster& cluster) : cluster_(cluster) {}
  absl::StatusOr<cluster::Pod> create_pod(const cluster::PodSpec& spec) override {
    return cluster_.create_pod(spec);
  }
  absl::Status delete_pod(const std::string& ns, const std::string& name, const std::string& uid,
                          Duration grace) override {
    return cluster_.delete_pod(ns, name, uid, grace);
  }
  absl::StatusOr<std::vector<cluster::Pod>> list_pods(const std::string& ns,
                                                      const std::string& job) override {
    PL_ASSIGN_OR_RETURN(std::vector<cluster::Pod> pods, cluster_.list_pods(ns, job));
    for (cluster::Pod& pod : pods) pod.log_path.clear();
    return pods;
  }
  absl::Status record_event(const cluster::Event& event) override { return cluster_.record_event(event); }
  void watch(OnChange on_change) override { cluster_.watch(std::move(on_change)); }
  absl::StatusOr<std::string> tail_log(const cluster::Pod& pod, int) override {
    asked_.lock()->push_back(pod.spec.name);
    return *answer_.lock();
  }
  Guarded<std::vector<std::string>> asked_;
  Guarded<absl::StatusOr<std::string>> answer_{std::string("last words\n")};

 private:
  testing::FakeCluster& cluster_;
};

class BlamedLogTest : public ReconcilerTest {
 protected:
  BlamedLogTest() {
    jobs_.edit([](api::TrainingJob& job) {
      job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
    });
    reconciler_.emplace(nodes_, jobs_, reports_, clock_, own_queue_, limits_, Logger::none());
    bring_up();
  }
  ~BlamedLogTest() override { reconciler_.reset(); }
  void blame(plan::CulpritKind kind) {
    (*reports_.report_.lock())->culprit =
        plan::Culprit{.role = Role::kWorker, .index = 0, .kind = kind, .age = limits_.verdict_grace};
  }
  std::vector<std::string> asked() { return *nodes_.asked_.lock(); }

  queue::WorkQueue own_queue_{clock_};  // the fixture's ends with its reconciler
  Nodes nodes_{cluster_};
};

TEST_F(BlamedLogTest, AMemberThatFailedIsAsked) {
  blame(plan::CulpritKind::kFailed);
  pass();
  EXPECT_THAT(asked(), ElementsAre("fashion-worker-0-0"));
  EXPECT_THAT(status().message, HasSubstr("last lines of pod fashion-worker-0-0's log:\nlast words"));
}

TEST_F(BlamedLogTest, ANodeThatIsNotReadyIsNotAsked) {
  cluster_.lose_node("fashion-worker-0-0");
  blame(plan::CulpritKind::kFailed);
  pass();
  EXPECT_EQ(status().phase, api::Phase::kRestarting) << status().message;
  EXPECT_THAT(asked(), IsEmpty());
  EXPECT_THAT(status().message, Not(HasSubstr("last lines")));
}

TEST_F(BlamedLogTest, ASilentMembersNodeIsNotAskedBeforeItsPodHasEnded) {
  cluster_.end_deleted_at_once(false);
  for (const auto kind :
       {plan::CulpritKind::kDead, plan::CulpritKind::kFrozen, plan::CulpritKind::kUnreachable}) {
    *jobs_.failure_.lock() = absl::UnavailableError("the API server is away");  // so that it is blamed again
    blame(kind);
    EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
    EXPECT_THAT(asked(), IsEmpty()) << static_cast<int>(kind);
  }
  cluster_.kill("fashion-worker-0-0", SIGKILL);
  *jobs_.failure_.lock() = absl::OkStatus();
  blame(plan::CulpritKind::kFrozen);
  pass();
  EXPECT_THAT(asked(), ElementsAre("fashion-worker-0-0"));
}

TEST_F(BlamedLogTest, APassThatIsRepeatedAsksForTheSameLogNoMore) {
  *nodes_.answer_.lock() = absl::DeadlineExceededError("the node does not answer");
  *jobs_.failure_.lock() = absl::UnavailableError("the API server is away");
  cluster_.end_deleted_at_once(false);
  blame(plan::CulpritKind::kFailed);
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
  EXPECT_THAT(status().message, HasSubstr("last lines of pod fashion-worker-0-0's log:\nlast words"));
}

}  // namespace
}  // namespace paceline::reconcile
