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
                                           "recreate",
                                           "slow member",
                                           "slow node"};
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
    kind = static_cast<FaultKind>(dice.between(0, static_cast<int>(FaultKind::kRecreate)));
  } while (harmless && !is_harmless(kind));
  return kind;
}

// A quarter of the seeds; the stories of the others are what they were before slow members came.
bool is_of_slow_members(std::uint64_t seed) {
  return seed % 8 == 1 || seed % 8 == 2;
}

// A sixteenth of the seeds: shares of the batch follow speed, and nobody is replaced.
bool is_of_shares(std::uint64_t seed) {
  return seed % 32 == 14 || seed % 32 == 19;
}

// A sixteenth of the seeds: members are checked before the first step.
bool is_of_checks(std::uint64_t seed) {
  return seed % 32 == 5 || seed % 32 == 22;
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
  training.fastest = training.compute / 2;
  training.slowest = training.compute * 3 / 2;
  nodes = static_cast<int>(dice.between(2, 5));
  controllers = dice.chance(0.4) ? 2 : 1;

  has_slow = is_of_slow_members(seed) || is_of_shares(seed);
  Dice slow(seed, 5);
  if (has_slow) slow_down(slow);
  if (is_of_shares(seed)) follow_speed();
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
  calm_after = length + seconds(60);
  if (is_of_checks(seed)) check_members();
  if (has_slow) add_slow_members(slow, length);
  std::ranges::stable_sort(faults, {}, &Fault::at);
  const auto restarts = [](const std::optional<api::ReplicaSpec>& role, bool fails) {
    return !role || role->restart_policy == api::RestartPolicy::kOnFailure ||
           role->restart_policy == api::RestartPolicy::kAlways ||
           (role->restart_policy == api::RestartPolicy::kExitCode && !fails);
  };
  // Exit code 1 is what a member of the native trainer has that fails.
  const auto is_failure = [](const Fault& each) { return each.kind == FaultKind::kFail; };
  const bool fails =
      std::ranges::any_of(faults, is_failure) || std::ranges::any_of(beside_handover, is_failure);
  // A member that finds no coordinator for a minute as it begins ends, which is charged to nobody.
  const bool enough = harmless || run.backoff_limit >= 1000;
  must_succeed = faults.empty() || (enough && restarts(roles.chief, fails) && restarts(roles.worker, fails));
}

void Scenario::check_members() {
  Dice dice(seed, 6);
  api::PreflightPolicy& check = job.job.spec.preflight.emplace();
  if (dice.chance(0.2) || harmless) check.action = api::PreflightAction::kReport;
  job.job.spec.stragglers.max_replacements = dice.between(1, 5);
}

// Steps are long enough, enough of them, and as long as each other, so that one that is slow is found, and
// costs the job more than its successor does.
void Scenario::slow_down(Dice& dice) {
  api::Spec& spec = job.job.spec;
  api::ReplicaSpecs& roles = spec.replica_specs;
  if (api::trainer_count(job.job) < 3 && dice.chance(0.8)) {
    const api::RestartPolicy policy =
        roles.chief ? roles.chief->restart_policy : api::RestartPolicy::kOnFailure;
    if (!roles.worker) roles.worker = api::ReplicaSpec{.replicas = 0, .restart_policy = policy};
    roles.worker->replicas += 2;
    if (roles.worker->max_replicas)
      roles.worker->max_replicas = std::max(*roles.worker->max_replicas, roles.worker->replicas);
  }
  spec.stragglers.action = api::StragglerPolicyAction::kReplace;
  spec.stragglers.lost_seconds = static_cast<double>(dice.between(0, 6));
  spec.stragglers.max_replacements = dice.between(1, 3);
  if (dice.chance(0.3)) spec.stragglers.window_seconds = dice.between(30, 300);
  training.plan.total_steps = dice.between(100, 400);
  spec.training->steps = training.plan.total_steps;
  training.compute = dice.between(milliseconds(50), milliseconds(250));
  const Duration noise = training.compute * dice.between(2, 15) / 100;
  training.fastest = training.compute - noise;
  training.slowest = training.compute + noise;
  const std::int64_t workers = roles.worker ? roles.worker->places() : 0;
  const std::int64_t most = std::max(
      workers, roles.worker ? roles.worker->max_replicas.value_or(0) + roles.worker->standby.value_or(0) : 0);
  if (dice.chance(0.15)) room = static_cast<int>(most + (roles.chief ? 1 : 0));
}

// There are samples enough to be shared out, and a step takes as long as a member has of them.
void Scenario::follow_speed() {
  constexpr std::int64_t kBatch = 96;
  api::Spec& spec = job.job.spec;
  spec.stragglers.action = api::StragglerPolicyAction::kRebalance;
  spec.training->global_batch_size = training.ledger.global_batch_size = kBatch;
  training.ledger.samples += kBatch;
  training.follows_shares = true;
}

void Scenario::add_slow_members(Dice& dice, Duration length) {
  // They are all that happens.
  if (dice.chance(0.3)) {
    faults.clear();
    harmless = true;
  }
  undisturbed = faults.empty();
  const std::int64_t count = dice.between(1, 3);
  for (std::int64_t i = 0; i < count; ++i) {
    faults.push_back({dice.between(seconds(1), length * 2 / 3),
                      dice.chance(0.6) ? FaultKind::kSlowMember : FaultKind::kSlowNode});
  }
  const std::int64_t beside = undisturbed ? 0 : dice.between(0, 2);
  for (std::int64_t i = 0; i < beside; ++i)
    beside_handover.push_back({dice.between(milliseconds(0), seconds(8)), some_fault(dice, harmless)});
  calm_after = length * 2 + (dice.chance(0.2) ? dice.between(seconds(60), seconds(800)) : seconds(60));
}

}  // namespace paceline::simulation
