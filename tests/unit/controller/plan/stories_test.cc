// Random stories of jobs that restart, are suspended, resized and disturbed, planned from lists that may be
// behind.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/rng.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/explain.h"
#include "controller/plan/restart_budget.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;

constexpr int kStories = 100;
constexpr int kStoryRounds = 120;

constexpr const char* kReasons[] = {"Error",        "OOMKilled",  "Evicted",
                                    "NodeShutdown", "Preempting", "StartError"};

class Story {
 public:
  explicit Story(std::uint64_t seed)
      : rng_(seed, 11), world_(make_world(static_cast<int>(rng_.below(2)), 3)) {
    auto& roles = world_.job.spec.replica_specs;
    roles.worker->restart_policy = static_cast<api::RestartPolicy>(rng_.below(4));
    if (roles.chief) roles.chief->restart_policy = static_cast<api::RestartPolicy>(rng_.below(4));
    if (rng_.below(3) == 0)
      roles.ps = api::ReplicaSpec{2, static_cast<api::RestartPolicy>(rng_.below(4)), {}};
    if (rng_.below(3) == 0)
      roles.evaluator = api::ReplicaSpec{1, static_cast<api::RestartPolicy>(rng_.below(4)), {}};
    world_.job.spec.run_policy.backoff_limit = static_cast<std::int64_t>(rng_.below(20));
    world_.job.spec.run_policy.clean_pod_policy = static_cast<api::CleanPodPolicy>(rng_.below(3));
    world_.job.spec.run_policy.suspend = rng_.below(4) == 0;
    if (rng_.below(2) == 0) world_.job.spec.run_policy.restart_window_seconds = 1 + rng_.below(300);
    if (rng_.below(3) == 0) world_.report.reset();
    if (rng_.below(3) == 0) run_own_program();
    world_.limits.disruptions = 1 + static_cast<int>(rng_.below(30));
  }

  void tell() {
    for (int round = 0; round < kStoryRounds && !::testing::Test::HasFailure(); ++round) {
      disturb();
      pass();
      if (rng_.below(2) == 0) advance(world_);
      world_.now += Duration(1s) * rng_.below(30);
    }
    // Nothing more happens: it comes to rest.
    world_.job.spec.run_policy.suspend = false;
    for (int round = 0; round < 200; ++round) {
      pass();
      advance(world_);
      world_.now += 5s;
    }
    const Plan rest = plan(world_);
    EXPECT_TRUE(rest.actions.empty()) << explain(rest);
    EXPECT_TRUE(is_terminal(rest.status.phase) || rest.status.phase == api::Phase::kRunning) << explain(rest);
  }

 private:
  void run_own_program() {
    world_.job.spec.training.reset();
    world_.report.reset();
    auto& roles = world_.job.spec.replica_specs;
    for (auto* const replica : {&roles.chief, &roles.worker, &roles.ps}) {
      if (*replica && rng_.below(4) != 0)
        (*replica)->restart_scope = static_cast<api::RestartScope>(rng_.below(3));
    }
  }

  void disturb() {
    if (rng_.below(3) != 0) return;
    api::RunPolicy& policy = world_.job.spec.run_policy;
    if (rng_.below(8) == 0) policy.suspend = !policy.suspend;
    if (rng_.below(8) == 0)
      world_.job.spec.replica_specs.worker->replicas = 1 + static_cast<std::int64_t>(rng_.below(5));
    if (world_.pods.empty()) return;
    cluster::Pod& pod = world_.pods[rng_.below(world_.pods.size())];
    if (rng_.below(4) == 0) pod.node_not_ready = !pod.node_not_ready;
    if (rng_.below(8) == 0 && view_runs(world_)) {
      world_.report->fault = api::Fault{
          .kind = static_cast<api::FaultKind>(rng_.below(6)), .role = pod.spec.role, .index = pod.spec.index};
      world_.report->fault_age = 1h;
    } else if (rng_.below(4) == 0) {
      pod.deleting = true;
    } else if (pod.phase == cluster::PodPhase::kRunning) {
      const int codes[] = {1, 3, 137, 0};  // one that ends well before it joins is the coordinator's to judge
      const bool trains = world_.job.status.phase == api::Phase::kRunning;
      finish(world_, pod, codes[rng_.below(trains ? 4 : 3)], Duration(1ms) * rng_.below(3000));
      if (pod.phase == cluster::PodPhase::kFailed) pod.reason = kReasons[rng_.below(std::size(kReasons))];
    }
  }

  void pass() {
    const Plan made = plan(world_);
    check(made);
    apply(made, world_);
    std::map<std::pair<Role, int>, std::string> live;
    for (const cluster::Pod& pod : world_.pods) {
      // A ring fences off the one before.
      if (pod.ended() || is_elastic(world_.job, pod.spec.role)) continue;
      const auto [other, is_first] = live.emplace(std::pair(pod.spec.role, pod.spec.index), pod.spec.name);
      EXPECT_TRUE(is_first) << pod.spec.name << " and " << other->second << " live";
    }
  }

  void check(const Plan& made) {
    const api::Status &before = world_.job.status, &after = made.status;
    EXPECT_GE(after.restarts.attempt, before.restarts.attempt);
    EXPECT_GE(after.restarts.total, before.restarts.total);
    const auto is_provisional = [](const api::Status& of) { return of.fault && of.fault->provisional_since; };
    const std::size_t recounted = is_provisional(before) && !is_provisional(after) ? 1 : 0;
    EXPECT_GE(after.restarts.by_cause.size() + recounted, before.restarts.by_cause.size());
    std::int64_t sum = 0;
    for (const api::RestartCount& each : after.restarts.by_cause)
      sum += each.cause == api::RestartCause::kResized ? 0 : each.count;
    EXPECT_EQ(sum, after.restarts.total);
    int exclusive = 0;
    for (const api::Condition& each : after.conditions)
      exclusive += each.status && each.type != "Created" ? 1 : 0;
    const bool has_state = after.phase != api::Phase::kStarting && after.phase != api::Phase::kPending;
    EXPECT_EQ(exclusive, has_state ? 1 : 0) << explain(made);
    EXPECT_TRUE(!is_terminal(before.phase) || after.phase == before.phase);
    const RestartBudget budget = restart_budget(world_.job, after.restarts, world_.now);
    const bool too_many = budget.used > budget.limit && !is_terminal(after.phase);
    EXPECT_TRUE(!too_many || is_provisional(after)) << explain(made);
    const auto of_ring = [&](const CreatePod& each) { return api::is_member(world_.job, each.spec.role); };
    EXPECT_TRUE(!too_many || std::ranges::none_of(actions_of<CreatePod>(made), of_ring)) << explain(made);
    const bool may_create = !is_terminal(after.phase) && after.phase != api::Phase::kSuspended &&
                            after.restarts.attempt == before.restarts.attempt;
    EXPECT_TRUE(may_create || actions_of<CreatePod>(made).empty()) << explain(made);
    for (const CreatePod& each : actions_of<CreatePod>(made))
      EXPECT_FALSE(done_.contains(each.spec.name)) << each.spec.name << " has ended well\n" << explain(made);
    for (const cluster::Pod& pod : world_.pods) {
      if (pod.phase == cluster::PodPhase::kSucceeded && !pod.deleting) done_.insert(pod.spec.name);
    }
  }

  Rng rng_;
  Observed world_;
  std::set<std::string> done_;  // pods that were seen to have ended well
};

TEST(StoriesTest, KeepTheirPromises) {
  for (std::uint64_t seed = 1; seed <= kStories && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Story(seed).tell();
  }
}

// However old the list's word of others' changes is, no second pod of a place comes to life: what the
// controller itself did it knows (Cluster::list_pods).
TEST(StoriesTest, AnOldListDoesNoHarm) {
  for (std::uint64_t seed = 1; seed <= kStories; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 13);
    Observed world = make_running_world(0, 3);
    world.job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
    world.job.spec.run_policy.backoff_limit = 100;
    for (int round = 0; round < 60; ++round) {
      std::vector<cluster::Pod> seen = world.pods;  // before others' changes and the cluster's own
      if (rng.below(4) == 0 && !world.pods.empty()) {
        cluster::Pod& pod = world.pods[rng.below(world.pods.size())];
        if (!pod.ended()) finish(world, pod, 137, 1s);
      }
      if (rng.below(2) == 0) advance(world);
      Observed stale = world;
      if (rng.below(2) == 0) stale.pods = seen;
      apply(plan(stale), world);
      std::map<int, int> live;
      for (const cluster::Pod& pod : world.pods) live[pod.spec.index] += pod.ended() ? 0 : 1;
      for (const auto& [index, count] : live)
        EXPECT_LE(count, 1) << "worker-" << index << " in round " << round;
      world.now += 5s;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace paceline::plan
