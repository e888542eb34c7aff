// The table of fields but for spec.training (fields_training.cc), and how ranges are said and checked.

#include "controller/api/fields.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace paceline::api {

namespace {

void visit(FieldVisitor& v, Metadata& m) {
  v.text({.name = "name",
          .meaning = "The job's name; pods and the run's folder are named after it",
          .required = true},
         TextKind::kJobName, m.name);
  v.text({.name = "namespace", .meaning = "The namespace that the job belongs to"}, TextKind::kNamespace,
         m.ns);
  v.labels({.name = "labels", .meaning = "Labels, as of any Kubernetes object"}, true, m.labels);
  v.labels({.name = "annotations", .meaning = "Annotations, as of any Kubernetes object"}, false,
           m.annotations);
  for (const char* name :
       {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers",
        "ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"})
    v.ignored(name);
}

constexpr char kTransportMeaning[] = "Auto: shared memory where all members are on one host, else TCP";

void visit(FieldVisitor& v, ParameterServer& p, Synchronization mode) {
  v.integer(
      {.name = "gradientsPerStep",
       .meaning =
           "An update is made of the first so many gradients, and the others are dropped, without spare "
           "workers: fewer samples per step; absent: everybody's, but for backupWorkers",
       .when = {mode == Synchronization::kSynchronous, "synchronization: Synchronous"}},
      {.min = 1, .max = kMaxGroupMembers - 1}, p.gradients_per_step);
  v.integer(
      {.name = "staleness",
       .meaning = "By how many units of work a worker may lead the slowest; 0: as Synchronous, to the bit",
       .when = {mode == Synchronization::kBoundedStaleness, "synchronization: BoundedStaleness"}},
      {.min = 0, .max = 1'000'000}, p.staleness);
  v.number({.name = "delayCompensation",
            .meaning =
                "Lambda of DC-ASGD: late gradients are corrected by what has changed since; 0: they are not",
            .when = {mode == Synchronization::kAsynchronous, "synchronization: Asynchronous"}},
           {.min = 0, .max = 1e6}, p.delay_compensation);
  v.choice({.name = "transport", .meaning = kTransportMeaning}, p.transport);
  v.flag({.name = "overlap",
          .meaning = "Push a slice of the gradient while back-propagation goes on; false: after it"},
         p.overlap);
  v.bytes(
      {.name = "sliceBytes",
       .meaning = "The weights are cut into slices of at most about this size, which go round the servers"},
      {.min = 1 << 10, .max = 1 << 30}, p.slice_bytes);
  v.number({.name = "timeoutSeconds",
            .meaning = "Who waits longer for a server, or for the other workers, fails and names them"},
           {.min = 0.1, .max = 86'400}, p.timeout_seconds);
}

void visit(FieldVisitor& v, Strategy& s) {
  v.choice({.name = "type",
            .meaning = "How gradients meet: among the members, or on servers that hold the weights"},
           s.type);
  v.choice({.name = "synchronization",
            .meaning =
                "Synchronous: every step waits for every member, but for backupWorkers; Asynchronous: nobody "
                "waits; BoundedStaleness: nobody gets too far ahead"},
           s.synchronization);
  const bool servers = s.type == StrategyType::kParameterServer;
  v.integer(
      {.name = "backupWorkers",
       .meaning =
           "So many of those who train are spare: the first gradients of a step count, as many as there "
           "are others, and no step waits for the slowest",
       .when = {servers && s.synchronization == Synchronization::kSynchronous,
                "type: ParameterServer and synchronization: Synchronous"}},
      {.min = 0, .max = kMaxGroupMembers - 2}, s.backup_workers);
  v.choice({.name = "encryption",
            .meaning = "TLS: what members send one another between hosts is encrypted (TLS 1.3, by keys of "
                       "the job); None: it is not"},
           s.encryption);
  v.object({.name = "parameterServer",
            .meaning = "What makes an update, and how bytes move to servers and back",
            .when = {servers, "type: ParameterServer"}},
           [&] { visit(v, s.parameter_server, s.synchronization); });
  v.object(
      {.name = "allReduce",
       .meaning = "How the all-reduce moves bytes",
       .when = {!servers, "type: AllReduce"}},
      [&] {
        AllReduce& a = s.all_reduce;
        v.choice({.name = "transport", .meaning = kTransportMeaning}, a.transport);
        v.choice({.name = "algorithm",
                  .meaning = "Auto: by size and number of members, from a measured table; Ring, "
                             "RecursiveDoubling and HalvingDoubling need transport: TCP"},
                 a.algorithm);
        v.flag({.name = "overlap",
                .meaning = "Exchange a bucket of gradients while back-propagation goes on; false: after it"},
               a.overlap);
        v.bytes({.name = "bucketBytes",
                 .meaning = "Gradients are exchanged in buckets of about this size; from GPU to GPU, of 32 "
                            "MiB at least"},
                {.min = 1 << 10, .max = 1 << 30}, a.bucket_bytes);
        v.integer({.name = "socketsPerPeer", .meaning = "TCP connections to each neighbour"},
                  {.min = 1, .max = 16}, a.sockets_per_peer);
        v.number(
            {.name = "timeoutSeconds", .meaning = "A member that waits longer for a peer fails and names it"},
            {.min = 0.1, .max = 86'400}, a.timeout_seconds);
        v.number({.name = "maxDropRate",
                  .meaning = "Partial steps: members that are out of time leave samples out, at most this "
                             "part of all; needs microBatchSize; 0: steps are whole"},
                 {.min = 0, .max = 0.5}, a.max_drop_rate);
      });
}

void visit(FieldVisitor& v, EnvVar& e) {
  v.text(
      {.name = "name",
       .meaning = "The variable's name; PACELINE_* are set by Paceline itself, but for PACELINE_DEVICE and "
                  "PACELINE_CUDA_GRAPHS",
       .required = true},
      TextKind::kEnvName, e.name);
  v.text({.name = "value", .meaning = "Its value; numbers go in quotes"}, TextKind::kAny, e.value);
}

// Of several containers each needs its name: which of them trains is told by it.
void visit(FieldVisitor& v, Container& c, bool one_of_several) {
  v.text({.name = "name",
          .meaning = "The container's name; required where there are several",
          .required = one_of_several},
         TextKind::kContainerName, c.name);
  v.text({.name = "image", .meaning = "The container's image; used on Kubernetes only"}, TextKind::kImage,
         c.image);
  v.texts({.name = "command",
           .meaning = "The program to run instead of the built-in trainer, for custom models and data"},
          TextKind::kAny, {.min = 0, .max = 1024}, c.command);
  v.texts({.name = "args", .meaning = "Arguments of the command"}, TextKind::kAny, {.min = 0, .max = 1024},
          c.args);
  const std::size_t variables =
      v.begin_list({.name = "env", .meaning = "Environment variables", .open = true, .key = "name"},
                   c.env.size(), {.max = 1024});
  c.env.resize(variables);
  for (std::size_t i = 0; i < variables; ++i) {
    if (!v.begin_item(i)) continue;
    visit(v, c.env[i]);
    v.end();
  }
  v.end();
  if (v.begin({.name = "resources", .meaning = "What the container may use", .open = true},
              c.cpu_limit > 0 || c.cpu_request > 0)) {
    if (v.begin({.name = "limits", .meaning = "Upper limits", .open = true}, c.cpu_limit > 0)) {
      v.cores({.name = "cpu",
               .meaning = "Processor cores that one member may use (\"2\", \"500m\"); absent: as requested, "
                          "else shared out evenly in a local run, and one thread on Kubernetes"},
              false, c.cpu_limit);
      v.end();
    }
    if (v.begin({.name = "requests", .meaning = "What a node must have free for it", .open = true},
                c.cpu_request > 0)) {
      v.cores({.name = "cpu",
               .meaning = "Processor cores that are the member's own: it computes with so many threads where "
                          "there is no limit; used on Kubernetes only"},
              true, c.cpu_request);
      v.end();
    }
    v.end();
  }
}

void visit_template(FieldVisitor& v, ReplicaSpec& r) {
  const bool present = r.container.has_value();
  const Field whole = {
      .name = "template",
      .meaning =
          "The pod as in Kubernetes, of which the fields listed here are read; absent: the built-in trainer",
      .open = true};
  if (v.whole(whole, r.pod_template) || !v.begin(whole, present)) return;
  if (v.begin({.name = "spec", .meaning = "The pod's specification", .required = true, .open = true},
              present)) {
    std::vector<Container> containers;
    if (present) containers.push_back(*r.container);
    const std::size_t count = v.begin_list(
        {.name = "containers",
         .meaning = "The container that is called trainer, else the first, is the member; others "
                    "run beside it",
         .required = true,
         .open = true,
         .key = "name"},
        containers.size(), {.min = 1, .max = 32});
    containers.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!v.begin_item(i)) continue;
      visit(v, containers[i], count > 1);
      v.end();
    }
    v.end();
    v.integer({.name = "terminationGracePeriodSeconds",
               .meaning = "How long a pod may take to end when it is asked to; absent: 30, and for rank 0 of "
                          "a training and its servers 310, since it may save; used on Kubernetes only"},
              {.min = 0, .max = 1LL << 31}, r.termination_grace_seconds);
    v.end();
    const auto named = std::ranges::find(containers, Container().name, &Container::name);
    if (count > 0) {
      r.container_index =
          named == containers.end() ? 0 : static_cast<std::size_t>(named - containers.begin());
      r.container = std::move(containers[r.container_index]);
    }
  }
  v.end();
}

void visit(FieldVisitor& v, ReplicaSpec& r, IntegerRange replicas, bool elastic) {
  v.integer({.name = "replicas", .meaning = "How many members of this role"}, replicas, r.replicas);
  v.integer(
      {.name = "minReplicas",
       .meaning = "The smallest number that replicas may be edited to, and how few of those who train an "
                  "all-reduce goes on with when members are lost; absent: 1",
       .when = {elastic, "the role worker"}},
      replicas, r.min_replicas);
  v.integer(
      {.name = "maxReplicas",
       .meaning =
           "The largest number that replicas may be edited to; absent, beside minReplicas: no bound of its "
           "own; without both they may not be edited",
       .when = {elastic, "the role worker"}},
      replicas, r.max_replicas);
  v.integer({.name = "standby",
             .meaning = "How many more workers of an all-reduce wait, ready, until one is lost",
             .when = {elastic, "the role worker"}},
            {.min = 0, .max = kMaxGroupMembers}, r.standby);
  v.choice(
      {.name = "restartPolicy",
       .meaning =
           "What follows when a member is lost. Never: the job fails; OnFailure, Always: it starts again "
           "(restartScope); ExitCode: likewise, but codes 1 to 127, OutOfMemory, NotFinite and "
           "DataUnreadable end it"},
      r.restart_policy);
  v.choice({.name = "restartScope",
            .meaning = "Who starts again with a lost member (see below). Replica: it alone; Role: all of its "
                       "role; Job: all "
                       "members, from the newest checkpoint"},
           r.restart_scope);
  visit_template(v, r);
}

void visit(FieldVisitor& v, ReplicaSpecs& r) {
  constexpr IntegerRange kOne{.min = 0, .max = 1}, kMany{.min = 0, .max = kMaxGroupMembers};
  static_assert(kMaxGroupMembers == 256, "two meanings below say it");
  v.optional_object({.name = "chief",
                     .meaning = "Rank 0: trains like a worker, and writes what one member must write",
                     .any_case = true},
                    r.chief, [&](ReplicaSpec& spec) { visit(v, spec, kOne, false); });
  v.optional_object({.name = "worker",
                     .meaning = "Those who train, up to 256 of them; without a chief, worker 0 is rank 0",
                     .any_case = true,
                     .same_as = "chief"},
                    r.worker, [&](ReplicaSpec& spec) { visit(v, spec, kMany, true); });
  v.optional_object(
      {.name = "ps",
       .meaning = "Parameter servers, up to 256: with training those of strategy.type: ParameterServer, "
                  "without it the template's own program",
       .any_case = true,
       .same_as = "chief"},
      r.ps, [&](ReplicaSpec& spec) { visit(v, spec, kMany, false); });
  v.optional_object(
      {.name = "evaluator",
       .meaning = "Evaluates each new checkpoint beside the training, which its end or death does "
                  "not touch",
       .any_case = true,
       .same_as = "chief"},
      r.evaluator, [&](ReplicaSpec& spec) { visit(v, spec, kOne, false); });
}

void visit(FieldVisitor& v, RunPolicy& p) {
  constexpr IntegerRange kSeconds{.min = 1, .max = 1LL << 31};
  v.flag({.name = "suspend",
          .meaning = "true: the job has no pods; false: it goes on, from the newest checkpoint"},
         p.suspend);
  v.integer({.name = "activeDeadlineSeconds",
             .meaning = "A job that runs longer since its start or resumption fails; absent: no limit"},
            kSeconds, p.active_deadline_seconds);
  v.integer({.name = "ttlSecondsAfterFinished",
             .meaning = "A job that has ended is deleted after so long; absent: it stays"},
            {.min = 0, .max = kSeconds.max}, p.ttl_seconds_after_finished);
  v.choice({.name = "cleanPodPolicy",
            .meaning = "Which pods are deleted when the job has ended: those that still run, all, or none"},
           p.clean_pod_policy);
  v.integer({.name = "backoffLimit",
             .meaning = "How often the members are started again before the job has failed; what is not the "
                        "job's fault (eviction, preemption, a lost node) is not counted"},
            {.min = 0, .max = 1'000'000}, p.backoff_limit);
  v.integer(
      {.name = "restartWindowSeconds",
       .meaning = "Only restarts of the last so many seconds count against backoffLimit; absent: all do"},
      kSeconds, p.restart_window_seconds);
  v.text({.name = "managedBy",
          .meaning = "Who sees to the job: paceline.dev/controller, or absent; with another value Paceline "
                     "leaves the job alone"},
         TextKind::kManager, p.managed_by);
  v.object({.name = "schedulingPolicy", .meaning = "For whoever admits and schedules the pods"}, [&] {
    SchedulingPolicy& s = p.scheduling_policy;
    v.text({.name = "queue", .meaning = "The name of the queue that the job waits in; shown, not acted on"},
           TextKind::kObjectName, s.queue);
    v.text({.name = "priorityClass", .meaning = "The pods' PriorityClass"}, TextKind::kObjectName,
           s.priority_class);
    v.integer({.name = "minAvailable",
               .meaning = "How many pods must fit before any is of use: the number of members, since they "
                          "train together or not at all"},
              {.min = 1, .max = 512}, s.min_available);
    v.reserved("minResources", "leave it out: resources are the template's");
    v.reserved("scheduleTimeoutSeconds", "use activeDeadlineSeconds");
  });
}

void visit(FieldVisitor& v, Spec& s) {
  v.object({.name = "strategy", .meaning = "How members train together"}, [&] { visit(v, s.strategy); });
  v.object({.name = "replicaSpecs",
            .meaning = "The members, by role; names of roles in any case",
            .required = true},
           [&] { visit(v, s.replica_specs); });
  v.optional_object(
      {.name = "training", .meaning = "The native trainer's part; absent: the template's own program runs"},
      s.training, [&](Training& training) { visit(v, training); });
  v.object({.name = "checkpoint", .meaning = "Saving the state of the training"}, [&] {
    Checkpoint& c = s.checkpoint;
    v.text(
        {.name = "location", .meaning = "A folder: a path or file:///path; absent: in the run's own folder"},
        TextKind::kPath, c.location);
    v.integer({.name = "everySteps", .meaning = "Every so many steps; 0: not by steps"},
              {.min = 0, .max = kPositive.max}, c.every_steps);
    v.number({.name = "everySeconds", .meaning = "Every so many seconds; 0: not by time"}, kNotNegative,
             c.every_seconds);
    v.integer({.name = "keep", .meaning = "How many checkpoints are kept, the newest ones"},
              {.min = 1, .max = 1000}, c.keep);
  });
  v.optional_object(
      {.name = "preflight",
       .meaning =
           "A short test of computing and of links before the first step of an all-reduce; absent: none",
       .asks = true},
      s.preflight, [&](PreflightPolicy& p) {
        v.choice(
            {.name = "action",
             .meaning = "Exclude: another pod takes the place of a member that fails it, within the budget "
                        "of stragglers; Report: it is told of, and trains"},
            p.action);
        v.number({.name = "factor",
                  .meaning = "A member fails that takes more than so many times the others' median"},
                 {.min = 1.05, .max = 100}, p.factor);
      });
  v.object({.name = "stragglers", .meaning = "What is done about a member that holds the others back"}, [&] {
    StragglerPolicy& p = s.stragglers;
    v.choice(
        {.name = "action",
         .meaning =
             "Report: it is told of; Replace: another pod takes its place, too; Rebalance: it takes fewer "
             "samples of the global batch, and the others more; Ignore: nobody looks"},
        p.action);
    v.number(
        {.name = "factor",
         .meaning = "Something is done about a member that is so many times as slow as the others, or more"},
        {.min = 1.05, .max = 100}, p.factor);
    v.number({.name = "lostSeconds",
              .meaning =
                  "Something is done once the job has lost so much time to it, and would lose as much again"},
             {.min = 0, .max = 1e6}, p.lost_seconds);
    v.integer({.name = "maxReplacements",
               .meaning = "With Replace, and of preflight: of members that are slow, within windowSeconds"},
              {.min = 1, .max = kMostStragglerReplacements}, p.max_replacements);
    v.integer(
        {.name = "windowSeconds",
         .meaning =
             "The budget's window; and so long the job's next pods keep away from a slow member's node"},
        {.min = 1, .max = 1LL << 31}, p.window_seconds);
    v.flag({.name = "toldByProgram",
            .meaning =
                "Without training, on Kubernetes: a container in each pod that is made from then on hears of "
                "its program's steps"},
           p.told_by_program);
  });
  v.object({.name = "runPolicy", .meaning = "Limits of the whole run"}, [&] { visit(v, s.run_policy); });
}

}  // namespace

void visit(FieldVisitor& v, TrainingJob& job) {
  v.constant({.name = "apiVersion", .meaning = "The version of this format", .required = true}, kApiVersion);
  v.constant({.name = "kind", .meaning = "The kind of object", .required = true}, kKind);
  v.object({.name = "metadata", .meaning = "Name and labels", .required = true},
           [&] { visit(v, job.metadata); });
  v.object({.name = "spec", .meaning = "What is to be done", .required = true}, [&] { visit(v, job.spec); });
  v.ignored("status");
}

std::string describe(IntegerRange range) {
  const std::string_view odd = range.odd ? ", odd" : "";
  if (range.max == std::numeric_limits<std::int64_t>::max()) return str_cat(">= ", range.min, odd);
  return str_cat(range.min, " to ", range.max, odd);
}

std::string describe(NumberRange range) {
  return str_cat(range.above_min ? "> " : ">= ", format_number(range.min), ", ",
                 range.below_max ? "< " : "<= ", format_number(range.max));
}

std::string describe(CountRange count) {
  if (count.min == count.max) return str_cat("exactly ", count.min, count.min == 1 ? " item" : " items");
  return str_cat(count.min, " to ", count.max, " items");
}

std::string describe(std::span<const Choice> choices) {
  std::string text;
  for (const Choice& choice : choices) {
    if (!choice.reserved) text += str_cat(text.empty() ? "" : ", ", choice.name);
  }
  return text;
}

bool contains(IntegerRange range, std::int64_t value) {
  return value >= range.min && value <= range.max && (!range.odd || value % 2 != 0);
}

bool contains(NumberRange range, double value) {
  if (range.above_min ? value <= range.min : value < range.min) return false;
  return range.below_max ? value < range.max : value <= range.max;
}

}  // namespace paceline::api
