// What holds for any observed world, however odd.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.h"
#include "controller/plan/attempts.h"
#include "controller/plan/explain.h"
#include "controller/plan/stragglers.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;

constexpr int kSeeds = 500;
constexpr int kRounds = 40;

cluster::Pod random_pod(Rng& rng, const Observed& world, Role role, int index) {
  cluster::Pod pod;
  pod.spec = pod_spec(world, Slot{role, index,
                                  role == Role::kChief ? &*world.job.spec.replica_specs.chief
                                                       : &*world.job.spec.replica_specs.worker});
  pod.uid = "uid-of-" + pod.spec.name;
  pod.phase = static_cast<cluster::PodPhase>(rng.below(4));
  pod.deleting = rng.below(6) == 0;
  if (pod.phase != cluster::PodPhase::kPending)
    pod.started = world.now - Duration(1s) * rng.below(100), pod.pid = 77;
  if (pod.phase == cluster::PodPhase::kSucceeded) pod.exit_code = 0;
  if (pod.phase == cluster::PodPhase::kFailed) {
    if (rng.below(2) == 0)
      pod.exit_code = 1 + static_cast<int>(rng.below(4));
    else
      pod.signal = 1 + static_cast<int>(rng.below(15));
  }
  if (pod.ended()) pod.finished = world.now - Duration(1ms) * rng.below(3000);
  return pod;
}

Observed random_world(Rng& rng) {
  Observed world = make_world(static_cast<int>(rng.below(2)), 1 + static_cast<int>(rng.below(12)));
  world.stop = rng.below(5) == 0 ? static_cast<Stop>(rng.below(3)) : Stop::kNo;
  world.deleted = rng.below(20) == 0;
  world.job.status.phase = static_cast<api::Phase>(rng.below(5));
  if (rng.below(2) == 0) world.job.spec.run_policy.active_deadline_seconds = 1 + rng.below(200);
  if (rng.below(3) != 0) world.job.status.start_time = world.now - Duration(1s) * rng.below(300);
  if (rng.below(10) == 0) world.create_failure = CreateFailure{static_cast<int>(rng.below(8)), "p", "e"};
  for (const Slot& slot : desired_slots(world.job)) {
    if (rng.below(3) == 0) continue;
    const cluster::Pod& pod = world.pods.emplace_back(random_pod(rng, world, slot.role, slot.index));
    if (pod.started) world.seen[pod.uid] = {pod.phase, pod.finished.value_or(*pod.started)};
  }
  if (rng.below(5) == 0) {
    world.report.reset();
    return world;
  }
  JobReport& report = *world.report;
  report.state = static_cast<JobState>(rng.below(6));
  report.in_state = Duration(1s) * rng.below(30);
  report.generation.value = rng.below(3);
  report.progress.step = static_cast<Step>(rng.below(1000));
  for (const cluster::Pod& pod : world.pods) {
    if (rng.below(2) == 0) report.members.push_back({{.role = pod.spec.role, .index = pod.spec.index}});
  }
  if (rng.below(4) == 0) {
    report.fault.emplace();
    report.fault->index = static_cast<int>(rng.below(14));
    report.fault->kind = static_cast<api::FaultKind>(rng.below(6));
    report.fault_age = Duration(1ms) * rng.below(2000);
  }
  return world;
}

template <typename Check>
void for_random_worlds(Check check) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 7);
    Observed world = random_world(rng);
    check(rng, world);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(PlanPropertiesTest, SameInputSamePlan) {
  for_random_worlds([](Rng&, const Observed& world) {
    const Plan a = plan(world), b = plan(Observed(world));
    EXPECT_EQ(a.actions, b.actions);
    EXPECT_EQ(a.status, b.status);
    EXPECT_EQ(a.requeue_after, b.requeue_after);
    EXPECT_EQ(explain(a), explain(b));
  });
}

TEST(PlanPropertiesTest, EveryActionHasAReason) {
  for_random_worlds([](Rng&, const Observed& world) {
    for (const Action& action : plan(world).actions) {
      std::visit([](const auto& each) { EXPECT_FALSE(each.reason.empty()); }, action);
    }
  });
}

TEST(PlanPropertiesTest, NothingIsCreatedForAJobThatIsNotToRun) {
  for_random_worlds([](Rng&, const Observed& world) {
    const Plan made = plan(world);
    const bool over = world.stop != Stop::kNo || world.deleted || is_terminal(world.job.status.phase) ||
                      (world.report && world.report->state == JobState::kFinished) ||
                      is_terminal(made.status.phase);
    EXPECT_TRUE(!over || actions_of<CreatePod>(made).empty());
  });
}

TEST(PlanPropertiesTest, ThePhaseNeverGoesBackAndAnEndIsAnEnd) {
  for_random_worlds([](Rng&, const Observed& world) {
    const api::Phase before = world.job.status.phase, after = plan(world).status.phase;
    EXPECT_GE(after, before);
    EXPECT_TRUE(!is_terminal(before) || after == before);
  });
}

TEST(PlanPropertiesTest, DeletionsNameAPodThatRuns) {
  for_random_worlds([](Rng&, const Observed& world) {
    for (const DeletePod& deletion : actions_of<DeletePod>(plan(world))) {
      const bool found = std::ranges::any_of(world.pods, [&](const cluster::Pod& pod) {
        return pod.uid == deletion.uid && pod.spec.name == deletion.name && !pod.ended();
      });
      EXPECT_TRUE(found) << deletion.name;
    }
  });
}

// A plan is made from a list in which some pods are still missing: at most the wanted ones exist, each once.
TEST(PlanPropertiesTest, AStaleListMakesNoDuplicates) {
  for_random_worlds([](Rng& rng, Observed& world) {
    for (int round = 0; round < 8; ++round) {
      Observed stale = world;
      std::erase_if(stale.pods, [&](const cluster::Pod&) { return rng.below(2) == 0; });
      const Plan made = plan(stale);
      apply(made, world);
      std::set<std::pair<Role, int>> slots;
      for (const cluster::Pod& pod : world.pods) {
        EXPECT_TRUE(slots.emplace(pod.spec.role, pod.spec.index).second) << pod.spec.name << " exists twice";
      }
      EXPECT_LE(slots.size(), desired_slots(world.job).size());
      advance(world);
    }
  });
}

// Time goes on, deleted pods end, and whatever the world looked like, planning comes to rest.
TEST(PlanPropertiesTest, PlansConverge) {
  for_random_worlds([](Rng&, Observed& world) {
    Plan last;
    for (int round = 0; round < kRounds; ++round) {
      last = plan(world);
      apply(last, world);
      advance(world);
      world.now += 10s;
      if (world.report) world.report->in_state += 10s;
      if (world.report && world.report->fault) world.report->fault_age += 10s;
    }
    const Plan rest = plan(world);
    EXPECT_TRUE(rest.actions.empty()) << explain(rest);
    if (is_terminal(rest.status.phase)) {
      EXPECT_TRUE(rest.done);
      EXPECT_TRUE(rest.status == world.job.status);
    }
  });
}

TEST(PlanPropertiesTest, TheConditionsThatAreWrittenAreThoseThatAreOurs) {
  // The job store's own, of a job whose spec became invalid; the planner says only that it is mended.
  std::set<std::string> written = {api::kInvalidSpec};
  for_random_worlds([&](Rng& rng, Observed& world) {
    world.job.spec.run_policy.suspend = rng.below(4) == 0;
    api::ReplicaSpecs& replicas = world.job.spec.replica_specs;
    const bool restarts = rng.below(2) == 0;
    for (std::optional<api::ReplicaSpec>* spec : {&replicas.chief, &replicas.worker}) {
      if (restarts && *spec) (*spec)->restart_policy = api::RestartPolicy::kOnFailure;
    }
    for (int round = 0; round < 4; ++round) {
      if (world.report && rng.below(4) == 0) world.report->stragglers = {api::Straggler{.pod = "a-worker-0"}};
      if (world.report && rng.below(4) == 0) world.report->last_save = LastSave{100, "the disk is full"};
      const Plan made = plan(world);
      for (const api::Condition& condition : made.status.conditions) written.insert(condition.type);
      apply(made, world);
      advance(world);
    }
  });
  EXPECT_EQ(written, std::set<std::string>(std::begin(api::kConditionTypes), std::end(api::kConditionTypes)));
}

TEST(PlanPropertiesTest, WhatIsStoppedEnds) {
  for_random_worlds([](Rng& rng, Observed& world) {
    world.stop = rng.below(2) == 0 ? Stop::kOrderly : Stop::kNow;
    bool done = false;
    for (int round = 0; round < 4 && !done; ++round) {
      const Plan made = plan(world);
      done = made.done;
      apply(made, world);
      advance(world);
    }
    EXPECT_TRUE(done);
  });
}

// A ring whose slow members are replaced.
Observed world_with_slow_members(Rng& rng) {
  api::TrainingJob job = make_job(static_cast<int>(rng.below(2)), 2 + static_cast<int>(rng.below(4)));
  for (auto* spec : {&job.spec.replica_specs.chief, &job.spec.replica_specs.worker}) {
    if (*spec) (*spec)->restart_policy = api::RestartPolicy::kOnFailure;
  }
  job.spec.run_policy.backoff_limit = 1000;
  job.spec.stragglers = {.action = api::StragglerPolicyAction::kReplace,
                         .lost_seconds = static_cast<double>(rng.below(3)),
                         .max_replacements = 1 + static_cast<std::int64_t>(rng.below(3)),
                         .window_seconds = 200 + static_cast<std::int64_t>(rng.below(4000))};
  Observed world = make_running_world(std::move(job));
  world.report->progress.eta_seconds = 1e6;
  return world;
}

std::vector<api::Straggler> random_stragglers(Rng& rng, const Observed& world) {
  std::vector<api::Straggler> stragglers;
  for (const Slot& slot : desired_slots(world.job)) {
    if (rng.below(3) != 0) continue;
    const std::int64_t number = wanted_attempt(world.job, slot.role, slot.index);
    stragglers.push_back({.role = slot.role,
                          .index = slot.index,
                          .pod = pod_name(world.job, slot.role, slot.index, number),
                          .part = "compute",
                          .factor = 1.1 + static_cast<double>(rng.below(20)) / 10,
                          .own_ms = 100,
                          .lost_ms = static_cast<double>(1 + rng.below(60)),
                          .since = world.now - Duration(1s) * rng.below(200)});
  }
  return stragglers;
}

// A member dies that trains, or a successor.
void kill_one(Rng& rng, Observed& world) {
  if (world.pods.empty()) return;
  cluster::Pod& pod = world.pods[rng.below(world.pods.size())];
  const auto& [role, index] = std::pair(pod.spec.role, pod.spec.index);
  if (pod.ended() || pod.phase != cluster::PodPhase::kRunning) return;
  kill(world, pod, SIGKILL);
  if (pod.spec.attempt != wanted_attempt(world.job, role, index)) return;
  world.report->lost = {{.fault = {.kind = api::FaultKind::kDead,
                                   .role = role,
                                   .index = index,
                                   .pod = pod.spec.name,
                                   .signal = SIGKILL},
                         .age = 1s}};
}

// Replacements are one at a time, no more than the budget, and none again whose successor was as slow or did
// not come.
void expect_sound(const api::TrainingJob& job, std::set<std::string>& known) {
  const std::vector<api::StragglerReplacement>& all = job.status.straggler_replacements;
  using enum api::ReplacementOutcome;
  EXPECT_LE(std::ranges::count(all, kUnderWay, &api::StragglerReplacement::outcome), 1);
  for (const api::StragglerReplacement& next : all) {
    if (!known.insert(next.successor).second) continue;
    std::int64_t within = 0;
    for (const api::StragglerReplacement& each : all) {
      if (next.at - each.at >= std::chrono::seconds(job.spec.stragglers.window_seconds)) continue;
      ++within;
      if (each.role != next.role || each.index != next.index) continue;
      const bool replaced = each.outcome == kReplaced || each.outcome == kAsSlow;
      EXPECT_FALSE(replaced && each.successor == next.pod) << next.pod << " is replaced again";
      EXPECT_FALSE(each.outcome == kNoSuccessor && each.pod == next.pod) << next.pod << " is tried again";
    }
    EXPECT_LE(within, job.spec.stragglers.max_replacements);
  }
}

// The living pods of each place that are not to go are counted.
std::map<std::pair<Role, int>, int> living(const Observed& world) {
  std::map<std::pair<Role, int>, int> living;
  for (const cluster::Pod& pod : world.pods) {
    if (!pod.ended() && !pod.deleting) ++living[{pod.spec.role, pod.spec.index}];
  }
  return living;
}

TEST(PlanPropertiesTest, SlowMembersAreReplacedOneAtATimeWithinTheBudgetAndLeaveNothing) {
  std::map<api::ReplacementOutcome, int> outcomes;
  for (std::uint64_t seed = 1; seed <= kSeeds / 10 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 8);
    Observed world = world_with_slow_members(rng);
    std::set<std::string> known;
    const auto look = [&] {
      const Plan made = plan(world);
      apply(made, world);
      expect_sound(world.job, known);
      if (rng.below(4) != 0) advance(world);
    };
    for (int round = 0; round < 2 * kRounds; ++round) {
      world.now += Duration(1s) * rng.below(rng.below(10) == 0 ? 700 : 30);
      if (rng.below(3) == 0) world.report->stragglers = random_stragglers(rng, world);
      if (rng.below(12) == 0) world.report->stragglers.reset();
      world.report->cleared.clear();
      if (rng.below(6) == 0) {
        for (const api::StragglerReplacement& each : world.job.status.straggler_replacements)
          world.report->cleared.push_back(each.pod);
      }
      if (rng.below(5) == 0) world.report->handed_over = handover_of(world.job);
      if (rng.below(25) == 0) kill_one(rng, world);
      if (rng.below(3) == 0) world.report->lost.clear();
      look();
      for (const auto& [place, count] : living(world))
        EXPECT_LE(count, 2) << member_name(place.first, place.second);
    }
    world.report->stragglers.emplace();
    world.report->lost.clear();
    for (int round = 0; round < 10; ++round) {
      world.now += 90s;
      look();
    }
    advance(world);
    for (const auto& [place, count] : living(world))
      EXPECT_EQ(count, 1) << member_name(place.first, place.second);
    for (const api::StragglerReplacement& each : world.job.status.straggler_replacements) {
      EXPECT_NE(each.outcome, api::ReplacementOutcome::kUnderWay);
      ++outcomes[each.outcome];
    }
    EXPECT_EQ(handover_of(world.job), std::nullopt);
  }
  EXPECT_EQ(outcomes.size(), 5U) << "all that may come of one came";
}

}  // namespace
}  // namespace paceline::plan
