#include "controller/diagnosis/diagnosis.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/process_end.h"
#include "base/text.h"

namespace paceline::diagnosis {

namespace {

using api::Fault;
using api::FaultKind;
using api::ObservationKind;
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

bool is_oom_killed(const cluster::Pod* pod) {
  return pod != nullptr && pod->ended() && pod->reason == "OOMKilled";
}

bool was_told_to_leave(const Place& place) {
  return place.built_in && place.pod->exit_code == kExitEnded;
}

RestartCause cause_by_pod(const Place& place) {
  const cluster::Pod& pod = *place.pod;
  if (const auto disruption = disruption_of(pod)) return *disruption;
  if (is_oom_killed(place.pod)) return RestartCause::kOomKilled;
  if (pod.reason == "DeadlineExceeded") return RestartCause::kDeadlineExceeded;
  if (pod.reason == "StartError" || pod.reason == "ContainerCannotRun") return RestartCause::kNotStarted;
  if (pod.signal || pod.exit_code.value_or(0) >= kFirstRetryableCode) return RestartCause::kKilled;
  if (was_told_to_leave(place)) return pod.deleting ? RestartCause::kDeleted : RestartCause::kControllerLost;
  return pod.ended() ? RestartCause::kExited : RestartCause::kDeleted;
}

RestartCause cause_of(const Fault& fault, const Place& place) {
  const cluster::Pod* const pod = place.pod;
  const RestartCause silence =
      pod != nullptr ? silenced_by(*pod).value_or(RestartCause::kSilent) : RestartCause::kSilent;
  switch (fault.kind) {
    case FaultKind::kMissing:
    case FaultKind::kFrozen:
    case FaultKind::kUnreachable:
      return silence;
    case FaultKind::kHung:
      return RestartCause::kHung;
    case FaultKind::kOutOfMemory:
      return is_oom_killed(pod) ? RestartCause::kOomKilled : RestartCause::kOutOfMemory;
    case FaultKind::kNotFinite:
      return RestartCause::kNotFinite;
    case FaultKind::kDataUnreadable:
      return RestartCause::kDataUnreadable;
    case FaultKind::kDiverged:
      return RestartCause::kDiverged;
    case FaultKind::kUnfit:
      return RestartCause::kUnfit;
    case FaultKind::kDeleted:
      return pod != nullptr ? cause_by_pod(place) : RestartCause::kDeleted;
    default:
      break;
  }
  const bool stopped = !fault.evidence.empty() && fault.evidence.front().kind == ObservationKind::kStopped;
  if (pod != nullptr && (pod->ended() || pod->deleting || disruption_of(*pod))) {
    const RestartCause cause = cause_by_pod(place);
    return stopped && cause == RestartCause::kControllerLost ? RestartCause::kDeleted : cause;
  }
  if (fault.signal) return RestartCause::kKilled;
  if (stopped) return RestartCause::kDeleted;  // somebody ended it, and it left in order
  // It ended as it was told, and took its reason with its pod.
  if (place.built_in && fault.exit_code == kExitEnded)
    return place.gone ? RestartCause::kDeleted : RestartCause::kControllerLost;
  const bool by_itself = fault.kind == FaultKind::kFailed || fault.kind == FaultKind::kRefused;
  return fault.exit_code || by_itself ? RestartCause::kExited : silence;
}

void add_evidence(ObservationKind kind, std::string detail, Fault& fault) {
  if (std::ranges::find(fault.evidence, kind, &api::Observation::kind) == fault.evidence.end())
    fault.evidence.push_back({kind, std::move(detail)});
}

// The pod knows the end of its process better than whoever heard of it.
void take_end(const cluster::Pod& pod, Fault& fault) {
  fault.exit_code = pod.exit_code;
  fault.signal = pod.signal;
  const auto ends = [](const api::Observation& seen) {
    return seen.kind == ObservationKind::kPodEnded || seen.kind == ObservationKind::kPodEndedEarly;
  };
  const auto told = std::ranges::find_if(fault.evidence, ends);
  const auto seen =
      told != fault.evidence.end() ? told : fault.evidence.insert(told, {ObservationKind::kPodEnded, ""});
  seen->detail = words_of(pod);
}

FaultKind kind_by_end(const Fault& fault, const cluster::Pod* pod) {
  if (pod != nullptr && pod->reason == "StartError") return FaultKind::kNotStarted;
  if (is_oom_killed(pod)) return FaultKind::kOutOfMemory;
  return fault.signal ? FaultKind::kKilled : FaultKind::kExited;
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

bool fell_silent(const api::Fault& fault) {
  const bool silent = fault.kind == FaultKind::kDead || fault.kind == FaultKind::kFrozen ||
                      fault.kind == FaultKind::kUnreachable;
  return silent && !fault.exit_code && !fault.signal;
}

std::string words_of(const cluster::Pod& pod) {
  if (pod.reason == "StartError") return pod.message;
  // "Error" and "Completed" say no more than the process's own end, which an init container's pod lacks.
  if (pod.reason.empty() || pod.reason == "Error" || pod.reason == "Completed")
    return pod.exit_code || pod.signal ? "" : pod.message;
  return str_cat(pod.reason, pod.message.empty() ? "" : ": ", pod.message);
}

api::Fault diagnose(const Place& place, std::optional<api::Fault> told) {
  const cluster::Pod* const pod = place.pod;
  Fault fault = told ? *std::move(told) : Fault{.role = place.role, .index = place.index};
  if (fault.pod.empty()) fault.pod = pod != nullptr ? pod->spec.name : place.pod_name;
  if (!fault.step) fault.step = place.last_step;
  const bool ended = pod != nullptr && pod->ended();
  if (pod != nullptr && fault.pid == 0) fault.pid = pod->pid;
  if (pod != nullptr && fault.host.empty()) fault.host = pod->host;
  if (ended) take_end(*pod, fault);
  // The coordinator may be faster to miss a member than anybody is to tell that its pod was deleted.
  const bool deleted =
      pod != nullptr ? !ended && pod->deleting && fault.kind == FaultKind::kDead : place.gone;
  if (fell_silent(fault) && !ended && deleted) {
    fault.kind = FaultKind::kDeleted;
    add_evidence(ObservationKind::kPodDeleted, pod != nullptr ? words_of(*pod) : "", fault);
  } else if ((fault.kind == FaultKind::kDead && (ended || fault.exit_code || fault.signal)) ||
             ((fault.kind == FaultKind::kKilled || fault.kind == FaultKind::kExited) && is_oom_killed(pod))) {
    fault.kind = kind_by_end(fault, pod);
  }
  if (pod != nullptr && pod->node_not_ready) add_evidence(ObservationKind::kNodeNotReady, "", fault);
  fault.cause = cause_of(fault, place);
  return fault;
}

api::Fault first_failure(std::span<const Place> failed) {
  const auto order = [](const Place& place) {
    return std::tuple(was_told_to_leave(place), place.pod->finished.value_or(WallTime::max()),
                      place.pod_name);
  };
  const Place* root = &*std::ranges::min_element(failed, {}, order);
  if (root->pod->exit_code == kExitFailed && root->pod->finished) {
    const auto explains = [&](const Place& place) {
      return place.pod->signal && place.pod->finished &&
             *place.pod->finished - *root->pod->finished <= kSameMoment;
    };
    if (const auto killed = std::ranges::find_if(failed, explains); killed != failed.end()) root = &*killed;
  }
  Fault fault = diagnose(*root);
  for (const Place& place : failed) {
    if (&place == root) continue;
    if (fault.victims.size() == api::kMostVictims) {
      ++fault.more_victims;
    } else {
      fault.victims.push_back({place.role,
                               place.index,
                               {ObservationKind::kPodEnded, words_of(*place.pod)},
                               place.pod->exit_code,
                               place.pod->signal,
                               false});
    }
  }
  return fault;
}

}  // namespace paceline::diagnosis
