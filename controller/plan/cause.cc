#include "controller/plan/cause.h"

#include <string_view>
#include <utility>

namespace paceline::plan {

namespace {

using api::RestartCause;

constexpr std::pair<std::string_view, RestartCause> kDisruptions[] = {
    {"Evicted", RestartCause::kEvicted},
    {"EvictionByEvictionAPI", RestartCause::kEvicted},
    {"Preempted", RestartCause::kPreempted},
    {"Preempting", RestartCause::kPreempted},
    {"PreemptionByScheduler", RestartCause::kPreempted},
    {"NodeLost", RestartCause::kNodeLost},
    {"DeletionByTaintManager", RestartCause::kNodeLost},
    {"DeletionByPodGC", RestartCause::kNodeLost},
    {"Shutdown", RestartCause::kNodeShutdown},
    {"NodeShutdown", RestartCause::kNodeShutdown},
    {"Terminated", RestartCause::kNodeShutdown},
    {"TerminationByKubelet", RestartCause::kNodeShutdown},
    {"UnexpectedAdmissionError", RestartCause::kRefusedByNode},
    {"NodeAffinity", RestartCause::kRefusedByNode},
    {"NodePorts", RestartCause::kRefusedByNode},
};

constexpr int kFirstRetryableCode = 128;

RestartCause cause_of_pod(const cluster::Pod& pod, bool evicted) {
  if (const auto disruption = disruption_of(pod)) return *disruption;
  if (pod.reason == "OOMKilled") return RestartCause::kOutOfMemory;
  if (pod.reason == "DeadlineExceeded") return RestartCause::kDeadlineExceeded;
  if (pod.reason == "StartError" || pod.reason == "ContainerCannotRun") return RestartCause::kNotStarted;
  if (pod.signal || pod.exit_code.value_or(0) >= kFirstRetryableCode) return RestartCause::kKilled;
  if (evicted) return RestartCause::kControllerLost;
  if (!pod.ended() && pod.deleting) return RestartCause::kDeleted;
  return RestartCause::kExited;
}

RestartCause cause_of_silence(const Blame& blame) {
  return blame.pod ? silenced_by(*blame.pod).value_or(RestartCause::kSilent) : RestartCause::kSilent;
}

}  // namespace

std::optional<api::RestartCause> disruption_of(const cluster::Pod& pod) {
  for (const auto& [reason, cause] : kDisruptions) {
    if (pod.reason == reason) return cause;
  }
  if (pod.reason.starts_with("OutOf")) return RestartCause::kRefusedByNode;  // OutOfcpu, OutOfmemory, ...
  return std::nullopt;
}

std::optional<api::RestartCause> silenced_by(const cluster::Pod& pod) {
  if (const auto disruption = disruption_of(pod)) return disruption;
  if (pod.node_not_ready) return RestartCause::kNodeLost;
  return std::nullopt;
}

api::RestartCause cause_of(const Blame& blame) {
  if (blame.gone) return RestartCause::kDeleted;
  const bool told_by_pod =
      blame.pod && (blame.pod->ended() || blame.pod->deleting || disruption_of(*blame.pod));
  switch (blame.kind.value_or(CulpritKind::kDead)) {
    case CulpritKind::kMissing:
    case CulpritKind::kFrozen:
    case CulpritKind::kUnreachable:
      return cause_of_silence(blame);
    case CulpritKind::kDiverged:
      return RestartCause::kDiverged;
    case CulpritKind::kDead:
    case CulpritKind::kFailed:
      break;
  }
  if (told_by_pod) return cause_of_pod(*blame.pod, blame.evicted);
  if (blame.signal) return RestartCause::kKilled;
  if (blame.exit_code || blame.kind == CulpritKind::kFailed) return RestartCause::kExited;
  return cause_of_silence(blame);
}

bool may_restart(api::RestartPolicy policy, const Blame& blame) {
  if (policy == api::RestartPolicy::kNever) return false;
  const RestartCause cause = cause_of(blame);
  if (policy != api::RestartPolicy::kExitCode || !api::is_charged(cause)) return true;
  return cause != RestartCause::kExited && cause != RestartCause::kNotStarted &&
         cause != RestartCause::kDeadlineExceeded;
}

}  // namespace paceline::plan
