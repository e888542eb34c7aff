// spec.strategy, and the roles that go with it: servers and evaluators.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/gpus.h"
#include "controller/api/rules.h"

namespace paceline::api {

namespace {

constexpr char kSynchronization[] = "spec.strategy.synchronization";
constexpr char kBackupWorkers[] = "spec.strategy.backupWorkers";
constexpr char kGradients[] = "spec.strategy.parameterServer.gradientsPerStep";
constexpr char kDropRate[] = "spec.strategy.allReduce.maxDropRate";
constexpr char kEncryption[] = "spec.strategy.encryption";
constexpr char kServers[] = "spec.replicaSpecs.ps";
constexpr char kEvaluator[] = "spec.replicaSpecs.evaluator";

bool has_servers(const TrainingJob& job) {
  return job.spec.strategy.type == StrategyType::kParameterServer;
}

void check_synchronization(const TrainingJob& job, Findings& f) {
  const Synchronization mode = job.spec.strategy.synchronization;
  if (has_servers(job) || mode == Synchronization::kSynchronous || !f.clean(kStrategyType)) return;
  f.refuse(kSynchronization, "the members of an all-reduce wait for one another", name(mode),
           "Synchronous; the others only with type: ParameterServer");
}

void check_servers(const TrainingJob& job, Findings& f) {
  if (!f.clean(kStrategyType) || !f.has(kReplicas)) return;
  const auto& ps = job.spec.replica_specs.ps;
  if (!has_servers(job)) {
    if (ps) f.refuse(kServers, "does not apply here", "", "only with strategy.type: ParameterServer");
    return;
  }
  if (!f.clean(kReplicas) || (ps && ps->replicas > 0)) return;
  f.refuse(ps ? kServers : kReplicas, "nobody holds the weights", "no servers",
           "the role ps with at least one replica; or strategy.type: AllReduce");
}

void check_gradients(const TrainingJob& job, Findings& f) {
  const Strategy& s = job.spec.strategy;
  const std::int64_t trainers = trainer_count(job);
  if (!has_servers(job) || trainers == 0 || !f.clean(kReplicas)) return;
  if (f.clean(kBackupWorkers) && s.backup_workers >= trainers)
    f.refuse(kBackupWorkers, "nobody's gradient would count", str_cat(s.backup_workers),
             str_cat("0 to ", trainers - 1, ", fewer than train"));
  const auto& gradients = s.parameter_server.gradients_per_step;
  if (!gradients || !f.clean(kGradients)) return;
  if (s.backup_workers > 0) {
    f.refuse(kGradients, "both backupWorkers and gradientsPerStep are given", "",
             "at most one of them: backupWorkers gives the samples of a late gradient to somebody else, "
             "gradientsPerStep leaves them out");
  } else if (*gradients > trainers) {
    f.refuse(kGradients, "more gradients than there are members that compute one", str_cat(*gradients),
             str_cat("1 to ", trainers));
  }
}

// Why two runs would differ; empty: they would not.
std::string chance_in(const TrainingJob& job) {
  const Strategy& s = job.spec.strategy;
  if (!has_servers(job))
    return s.all_reduce.max_drop_rate > 0 ? "which samples are left out depends on how long members compute"
                                          : "";
  const auto& gradients = s.parameter_server.gradients_per_step;
  if (s.synchronization == Synchronization::kAsynchronous)
    return "gradients are applied in the order in which they arrive";
  if (s.synchronization == Synchronization::kBoundedStaleness && s.parameter_server.staleness > 0)
    return str_cat("what a worker reads with staleness ", s.parameter_server.staleness,
                   " depends on who is faster");
  const bool first_count = s.backup_workers > 0 || (gradients && *gradients < trainer_count(job));
  return first_count ? "which gradients are the first of a step depends on who is faster" : "";
}

void check_deterministic(const TrainingJob& job, Findings& f) {
  const std::string path = "spec.training.deterministic";
  if (!job.spec.training->deterministic || !f.clean("spec.strategy") || !f.clean(kReplicas)) return;
  const std::string chance = chance_in(job);
  if (!chance.empty())
    f.refuse(path, str_cat("two runs would differ: ", chance), "true",
             has_servers(job)
                 ? "false; or Synchronous with all gradients, or BoundedStaleness with staleness: 0"
                 : "false; or allReduce.maxDropRate: 0");
}

bool computes_on_gpus(const ReplicaSpec& spec) {
  const auto variables = spec.container ? spec.container->env : std::vector<EnvVar>();
  const auto device = std::ranges::find(variables, "PACELINE_DEVICE", &EnvVar::name);
  if (device != variables.end() && !device->value.empty() && device->value != "auto")
    return device->value.starts_with("cuda");
  return asks_for_gpus(spec);
}

// A member must be able to end a step early, and have something to leave out. (The API server has no room for
// what is said of GPUs.)
void check_partial_steps(const TrainingJob& job, Findings& f) {
  const double rate = job.spec.strategy.all_reduce.max_drop_rate;
  const std::int64_t trainers = trainer_count(job), pass = job.spec.training->micro_batch_size;
  if (!(rate > 0) || trainers == 0 || !f.clean("spec.strategy") || !f.clean(kReplicas) ||
      !f.clean("spec.training"))
    return;
  for (const Role role : {Role::kChief, Role::kWorker}) {
    const auto& replica = replica_spec(job, role);
    if (replica && replica->replicas > 0 && computes_on_gpus(*replica))
      return f.refuse(kDropRate, "passes on a GPU run behind the host, which can't end a step early",
                      str_cat(rate), "0, or members without GPUs");
  }
  if (!may_have_two_trainers(job)) {
    Diagnostic& warning = f.add(kDropRate, "one member waits for nobody, and leaves nothing out");
    warning.severity = Severity::kWarning;
    warning.found = str_cat(rate);
    warning.allowed = "0; or two members that train";
  }
  const std::int64_t share = job.spec.training->global_batch_size / trainers;
  if (pass == 0 || pass >= share)
    f.refuse(kDropRate, "a member whose step is one pass has nothing to leave out", str_cat(rate),
             share > 1 ? str_cat("0; or training.microBatchSize: 1 to ", share - 1)
                       : "0; or a larger training.globalBatchSize, and training.microBatchSize");
}

// (The API server has no room for what is said of GPUs.)
void check_encryption(const TrainingJob& job, Findings& f) {
  const Strategy& s = job.spec.strategy;
  if (s.encryption == Encryption::kNone || !f.clean("spec.strategy") || !f.clean(kReplicas)) return;
  const Transport transport = has_servers(job) ? s.parameter_server.transport : s.all_reduce.transport;
  if (transport == Transport::kSharedMemory)
    f.refuse(kEncryption, "members that share memory send nothing over a network", name(s.encryption),
             "None; or transport: Auto or TCP");
  for (const Role role : {Role::kChief, Role::kWorker}) {
    const auto& replica = replica_spec(job, role);
    if (has_servers(job) || !replica || replica->replicas == 0 || !computes_on_gpus(*replica)) continue;
    return f.refuse(kEncryption, "gradients go from GPU to GPU by NCCL, which encrypts nothing",
                    name(s.encryption), "None, and encryption of the network below; or members without GPUs");
  }
}

void check_evaluator(const TrainingJob& job, Findings& f) {
  const auto& evaluator = job.spec.replica_specs.evaluator;
  const Checkpoint& c = job.spec.checkpoint;
  if (!evaluator || evaluator->replicas == 0) return;
  if (f.clean("spec.checkpoint") && c.every_steps == 0 && c.every_seconds == 0)
    f.refuse(kEvaluator, "it evaluates checkpoints, and the job writes none", "",
             "only with checkpoint.everySteps or checkpoint.everySeconds");
  const std::string data = "spec.training.data";
  if (f.has(data) && f.clean(data) && !may_have_held_out_data(job.spec.training->data))
    f.refuse(kEvaluator, "there is no held-out data to evaluate on", "",
             "only with data.test or data.testFraction");
}

}  // namespace

void check_strategy(const TrainingJob& job, Findings& findings) {
  check_synchronization(job, findings);
  check_servers(job, findings);
  check_gradients(job, findings);
  check_deterministic(job, findings);
  check_partial_steps(job, findings);
  check_encryption(job, findings);
  check_evaluator(job, findings);
}

}  // namespace paceline::api
