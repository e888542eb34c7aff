#include "tests/simulation/scenario.h"

#include <algorithm>

namespace paceline::simulation {

using std::chrono::milliseconds;
using std::chrono::seconds;

const char* name(FaultKind kind) {
  static constexpr const char* kNames[] = {"kill",
                                           "kill all",
                                           "out of memory",
                                           "fail",
                                           "pause",
                                           "freeze",
                                           "hang",
                                           "delete pod",
                                           "evict pod",
                                           "lose power",
                                           "cut off",
                                           "cut stream",
                                           "cut data",
                                           "slow network",
                                           "crash",
                                           "crash in pass",
                                           "pause controller",
                                           "API trouble",
                                           "lag",
                                           "list again",
                                           "conflict",
                                           "jump clock",
                                           "resize",
                                           "suspend",
                                           "recreate"};
  static_assert(std::size(kNames) == kFaultKinds);
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {

api::RestartPolicy some_policy(Dice& dice) {
  constexpr api::RestartPolicy kPolicies[] = {api::RestartPolicy::kOnFailure, api::RestartPolicy::kOnFailure,
                                              api::RestartPolicy::kAlways, api::RestartPolicy::kExitCode,
                                              api::RestartPolicy::kNever};
  return kPolicies[dice.between(0, 4)];
}

// Members outlive these, and nobody has to take their places.
bool is_harmless(FaultKind kind) {
  using enum FaultKind;
  constexpr FaultKind kHarmless[] = {
      kPause,      kSlowNetwork, kCrashController, kCrashInPass, kPauseController,
      kApiTrouble, kLag,         kListAgain,       kConflict,    kJumpClock};
  return std::ranges::find(kHarmless, kind) != std::end(kHarmless);
}

FaultKind some_fault(Dice& dice, bool harmless) {
  FaultKind kind{};
  do {
    kind = static_cast<FaultKind>(dice.between(0, kFaultKinds - 1));
  } while (harmless && !is_harmless(kind));
  return kind;
}

}  // namespace

Scenario::Scenario(std::uint64_t of) : seed(of) {
  Dice dice(seed, 1);
  api::TrainingJob& made = job.job;
  made.metadata.name = "sim";
  const bool chief = dice.chance(0.4);
  const std::int64_t workers = dice.between(chief ? 0 : 1, chief ? 4 : 5);
  auto& roles = made.spec.replica_specs;
  const api::RestartPolicy policy = some_policy(dice);
  if (chief)
    roles.chief =
        api::ReplicaSpec{.replicas = 1, .restart_policy = dice.chance(0.8) ? policy : some_policy(dice)};
  if (workers > 0) {
    roles.worker = api::ReplicaSpec{.replicas = workers, .restart_policy = policy};
    if (dice.chance(0.5)) roles.worker->min_replicas = dice.between(1, workers);
    if (dice.chance(0.5)) roles.worker->max_replicas = dice.between(workers, 6);
  }
  Dice spares(seed, 4);
  if (workers > 0 && spares.chance(0.3)) roles.worker->standby = spares.between(1, 2);
  api::RunPolicy& run = made.spec.run_policy;
  run.backoff_limit = dice.chance(0.6) ? 1000 : dice.between(0, 6);
  run.clean_pod_policy = dice.chance(0.8) ? api::CleanPodPolicy::kRunning : api::CleanPodPolicy::kAll;
  keeps_checkpoints = job.keeps_checkpoints = dice.chance(0.7);
  api::Training& train = made.spec.training.emplace();
  train.global_batch_size = 12;
  train.steps = dice.between(10, 150);
  train.seed = static_cast<std::int64_t>(seed % 1000);
  if (dice.chance(0.6)) made.spec.checkpoint.every_steps = dice.between(3, 40);

  training.ledger = {static_cast<std::uint64_t>(train.seed), dice.between(12, 100), train.global_batch_size};
  training.plan.total_steps = *train.steps;
  training.plan.evaluates = dice.chance(0.5);
  training.plan.evaluate_every = dice.chance(0.5) ? dice.between(5, 50) : 0;
  training.plan.saves = true;
  training.plan.checkpoint_every = made.spec.checkpoint.every_steps;
  training.compute = dice.between(milliseconds(20), milliseconds(400));
  training.save = dice.between(milliseconds(20), seconds(2));
  nodes = static_cast<int>(dice.between(2, 5));
  controllers = dice.chance(0.4) ? 2 : 1;

  const Duration length = training.compute * *train.steps * 5 / 4 + seconds(12);
  harmless = dice.chance(0.2);
  const bool storm = dice.chance(0.2);
  const std::int64_t count = dice.chance(0.05) ? 0 : storm ? dice.between(8, 20) : dice.between(1, 7);
  for (std::int64_t i = 0; i < count; ++i) {
    const Duration at = dice.between(milliseconds(100), length);
    faults.push_back({at, some_fault(dice, harmless)});
    // The second one meets the first one's recovery.
    if (dice.chance(0.3))
      faults.push_back({at + dice.between(milliseconds(1), seconds(8)), some_fault(dice, harmless)});
  }
  std::ranges::stable_sort(faults, {}, &Fault::at);
  calm_after = length + seconds(60);
  const auto restarts = [](const std::optional<api::ReplicaSpec>& role, bool fails) {
    return !role || role->restart_policy == api::RestartPolicy::kOnFailure ||
           role->restart_policy == api::RestartPolicy::kAlways ||
           (role->restart_policy == api::RestartPolicy::kExitCode && !fails);
  };
  // Exit code 1 is what a member of the native trainer has that fails.
  const bool fails =
      std::ranges::any_of(faults, [](const Fault& each) { return each.kind == FaultKind::kFail; });
  // A member that finds no coordinator for a minute as it begins ends, which is charged to nobody.
  const bool enough = harmless || run.backoff_limit >= 1000;
  must_succeed = faults.empty() || (enough && restarts(roles.chief, fails) && restarts(roles.worker, fails));
}

}  // namespace paceline::simulation
