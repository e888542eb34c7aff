#include "controller/cluster/kube/pod.h"

#include <algorithm>
#include <charconv>
#include <csignal>

#include "base/text.h"
#include "controller/cluster/kube/manifest.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/times.h"

namespace paceline::kube {

namespace {

using cluster::PodPhase;

std::int32_t number_of(const std::string& text) {
  std::int32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::max(number, 0);
}

Role role_of(std::string_view name) {
  return role_named(name).value_or(Role::kWorker);
}

PodPhase phase_of(std::string_view name) {
  if (name == "Running" || name == "Unknown") return PodPhase::kRunning;
  if (name == "Succeeded") return PodPhase::kSucceeded;
  return name == "Failed" ? PodPhase::kFailed : PodPhase::kPending;
}

const Json& named(const Json::array_t& list, std::string_view key, std::string_view name) {
  static const Json kNone;
  const auto found =
      std::ranges::find_if(list, [&](const Json& each) { return text_at(each, {key}) == name; });
  return found == list.end() ? kNone : *found;
}

// The condition of this type, if it is (not) true; else null.
const Json& condition(const Json& status, std::string_view type, std::string_view value) {
  static const Json kNone;
  const Json& found = named(list_at(status, {"conditions"}), "type", type);
  return text_at(found, {"status"}) == value ? found : kNone;
}

// Words that only say that all goes its way.
bool is_ordinary(std::string_view reason) {
  return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing" ||
         reason == "Completed";
}

void set_reason(SlimPod& pod, const std::string& reason, const std::string& message) {
  pod.reason = sanitize_line(reason, 64);
  pod.message = sanitize_line(message, kMaxPodMessageBytes);
}

void read_end(const Json& terminated, SlimPod& pod) {
  pod.started = parse_time(text_at(terminated, {"startedAt"}));
  pod.finished = parse_time(text_at(terminated, {"finishedAt"}));
  const std::string& reason = text_at(terminated, {"reason"});
  // The command never ran: its code is the container runtime's.
  if (reason == "StartError" || reason == "ContainerCannotRun") {
    pod.started.reset();
    return;
  }
  const auto code = static_cast<std::int32_t>(integer_at(terminated, {"exitCode"}));
  const auto signal = static_cast<std::int32_t>(integer_at(terminated, {"signal"}));
  if (signal > 0) {
    pod.signal = signal;
  } else if (code > 128 && code <= 128 + 64) {
    pod.signal = code - 128;  // as shells and container runtimes say it
  } else {
    pod.exit_code = code;
  }
}

// The first container that waits for something that may never come.
bool set_waiting_reason(const Json::array_t& statuses, SlimPod& pod) {
  for (const Json& status : statuses) {
    const std::string& reason = text_at(status, {"state", "waiting", "reason"});
    if (is_ordinary(reason)) continue;
    set_reason(pod, reason,
               str_cat("container ", text_at(status, {"name"}), ": ",
                       text_at(status, {"state", "waiting", "message"})));
    return true;
  }
  return false;
}

void set_pending_reason(const Json& status, SlimPod& pod) {
  const Json& unscheduled = condition(status, "PodScheduled", "False");
  if (!unscheduled.is_null()) {
    return set_reason(pod, text_at(unscheduled, {"reason"}), text_at(unscheduled, {"message"}));
  }
  if (set_waiting_reason(list_at(status, {"initContainerStatuses"}), pod)) return;
  set_waiting_reason(list_at(status, {"containerStatuses"}), pod);
}

void set_end_reason(const Json& status, const Json& terminated, SlimPod& pod) {
  const Json& disruption = condition(status, "DisruptionTarget", "True");
  const bool failed = pod.phase == PodPhase::kFailed;
  if (failed && !text_at(status, {"reason"}).empty()) {
    return set_reason(pod, text_at(status, {"reason"}), text_at(status, {"message"}));
  }
  if (failed && !disruption.is_null()) {
    return set_reason(pod, text_at(disruption, {"reason"}), text_at(disruption, {"message"}));
  }
  if (!terminated.is_null()) {
    const std::string& reason = text_at(terminated, {"reason"});
    const bool no_start = reason == "ContainerCannotRun";
    // A process that is killed for its memory leaves no words: what stands there is the end of its log.
    if (reason == "OOMKilled") return set_reason(pod, reason, "");
    return set_reason(pod, no_start ? "StartError" : reason, text_at(terminated, {"message"}));
  }
  for (const Json& each : list_at(status, {"initContainerStatuses"})) {
    const Json& ended = at(each, {"state", "terminated"});
    if (ended.is_null() || integer_at(ended, {"exitCode"}) == 0) continue;
    const std::string& words = text_at(ended, {"message"});
    pod.failed_init = text_at(each, {"name"});
    return set_reason(pod, text_at(ended, {"reason"}),
                      str_cat("init container ", pod.failed_init, " exited with code ",
                              integer_at(ended, {"exitCode"}), words.empty() ? "" : ": ", words));
  }
  set_reason(pod, "", text_at(status, {"message"}));
}

// The trainer's end is the pod's, whatever its sidecars do, or have made of the pod since. One that ends well
// while somebody else ends the pod may only do as it was told.
PodPhase phase_by_trainer(const Json& status, const SlimPod& pod) {
  const bool by_others = (pod.phase == PodPhase::kFailed && !text_at(status, {"reason"}).empty()) ||
                         !condition(status, "DisruptionTarget", "True").is_null();
  return pod.exit_code == 0 && !by_others ? PodPhase::kSucceeded : PodPhase::kFailed;
}

void read_metadata(const Json& metadata, SlimPod& pod) {
  const std::string& ns = text_at(metadata, {"namespace"});
  const Json& labels = at(metadata, {"labels"});
  pod.key = str_cat(ns, "/", text_at(metadata, {"name"}));
  pod.job_key = str_cat(ns, "/", text_at(labels, {kJobNameLabel}));
  pod.uid = text_at(metadata, {"uid"});
  pod.resource_version = text_at(metadata, {"resourceVersion"});
  pod.role = role_of(text_at(labels, {kRoleLabel}));
  pod.index = number_of(text_at(labels, {kIndexLabel}));
  pod.attempt = number_of(text_at(labels, {kAttemptLabel}));
  pod.avoids = text_at(metadata, {"annotations", kAvoidsAnnotation});
  pod.created = parse_time(text_at(metadata, {"creationTimestamp"}));
  pod.deletion = parse_time(text_at(metadata, {"deletionTimestamp"}));
}

// A pod that the node or the control plane ended has no trainer's end: the condition's time is the next best.
std::optional<WallTime> end_of(const Json& status) {
  for (const char* type : {"DisruptionTarget", "Ready"}) {
    const Json& found = named(list_at(status, {"conditions"}), "type", type);
    if (auto time = parse_time(text_at(found, {"lastTransitionTime"}))) return time;
  }
  return parse_time(text_at(status, {"startTime"}));
}

// Deletion is asked for a grace before the time that it is to be done at. A pod that ends in the same second,
// or by the signal that it is asked to end with, may do as it was told.
bool ended_before_deletion(const Json& metadata, const SlimPod& pod) {
  if (!pod.deletion || !pod.finished || pod.signal == SIGTERM) return false;
  const std::chrono::seconds grace(integer_at(metadata, {"deletionGracePeriodSeconds"}));
  return *pod.finished < *pod.deletion - grace;
}

// The node lifecycle controller takes condition Ready from the pods of a node that is not ready any more (40
// to 50 s after it was last heard), and changes nothing else. The kubelet, which gives and takes it
// otherwise, has a reason each time, and takes ContainersReady with it, or names a readiness gate.
bool is_given_up(const Json& status) {
  const Json& unready = condition(status, "Ready", "False");
  return !unready.is_null() && text_at(unready, {"reason"}).empty() &&
         !condition(status, "ContainersReady", "True").is_null();
}

std::size_t memory_of(const std::string& text) {
  constexpr std::size_t kInside = 15;  // texts up to this take no memory of their own
  constexpr std::size_t kMalloc = 16;  // and what malloc adds
  return text.capacity() <= kInside ? 0 : text.capacity() + 1 + kMalloc;
}

}  // namespace

std::string trainer_name(const Json& pod_spec) {
  const auto& containers = list_at(pod_spec, {"containers"});
  if (!named(containers, "name", kTrainerContainer).is_null()) return kTrainerContainer;
  return containers.empty() ? "" : text_at(containers[0], {"name"});
}

std::optional<SlimPod> slim_pod(const Json& object) {
  const Json& metadata = at(object, {"metadata"});
  if (text_at(metadata, {"name"}).empty() || text_at(metadata, {"uid"}).empty() ||
      text_at(metadata, {"labels", kJobNameLabel}).empty()) {
    return std::nullopt;
  }
  SlimPod pod;
  read_metadata(metadata, pod);
  pod.job_uid = owner_uid(object);
  const Json& status = at(object, {"status"});
  pod.phase = phase_of(text_at(status, {"phase"}));
  pod.ready = !condition(status, "Ready", "True").is_null();
  pod.node = text_at(object, {"spec", "nodeName"});
  pod.disruption = sanitize_line(text_at(condition(status, "DisruptionTarget", "True"), {"reason"}), 64);

  const auto& containers = list_at(status, {"containerStatuses"});
  for (const Json& each : containers)
    pod.restarts += static_cast<std::int32_t>(integer_at(each, {"restartCount"}));
  pod.trainer = trainer_name(at(object, {"spec"}));
  const Json& trainer = named(containers, "name", pod.trainer);
  const Json& terminated = at(trainer, {"state", "terminated"});
  pod.started = parse_time(text_at(trainer, {"state", "running", "startedAt"}));
  if (!terminated.is_null()) read_end(terminated, pod);
  const bool restarts = text_at(object, {"spec", "restartPolicy"}) != "Never";
  if (pod.phase == PodPhase::kRunning && !terminated.is_null() && !restarts) {
    pod.phase = phase_by_trainer(status, pod);
    pod.ready = false;
    pod.lingers = std::ranges::any_of(containers, [](const Json& each) {
      return !at(each, {"state", "running"}).is_null();
    });
  } else if (pod.phase == PodPhase::kFailed && !terminated.is_null()) {
    pod.phase = phase_by_trainer(status, pod);
  }
  const bool ended = pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
  pod.node_not_ready = !ended && is_given_up(status);
  if (ended) {
    set_end_reason(status, terminated, pod);
    if (!pod.finished) pod.finished = end_of(status);
    pod.ended_first = ended_before_deletion(metadata, pod);
  } else if (pod.deletion && !pod.disruption.empty()) {
    const Json& disruption = condition(status, "DisruptionTarget", "True");
    set_reason(pod, pod.disruption, text_at(disruption, {"message"}));
  } else {
    set_pending_reason(status, pod);
  }
  return pod;
}

cluster::Pod to_cluster_pod(const SlimPod& pod) {
  cluster::Pod result;
  const std::size_t slash = pod.key.find('/');
  result.spec.ns = pod.key.substr(0, slash);
  result.spec.name = pod.key.substr(slash + 1);
  result.spec.job = pod.job_key.substr(pod.job_key.find('/') + 1);
  result.spec.job_uid = pod.job_uid;
  result.spec.role = pod.role;
  result.spec.index = pod.index;
  result.spec.attempt = pod.attempt;
  result.spec.avoid_host = pod.avoids;
  result.uid = pod.uid;
  result.phase = pod.phase;
  result.deleting = pod.deletion.has_value();
  result.ended_first = pod.ended_first;
  result.lingers = pod.lingers;
  result.node_not_ready = pod.node_not_ready;
  result.host = pod.node;
  result.exit_code = pod.exit_code;
  result.signal = pod.signal;
  result.reason = pod.reason;
  result.message = pod.message;
  result.started = pod.started;
  result.finished = pod.finished;
  return result;
}

std::size_t memory_of(const SlimPod& pod) {
  std::size_t bytes = sizeof(SlimPod);
  for (const std::string* text :
       {&pod.key, &pod.job_key, &pod.uid, &pod.resource_version, &pod.job_uid, &pod.trainer, &pod.node,
        &pod.avoids, &pod.reason, &pod.message, &pod.disruption, &pod.failed_init}) {
    bytes += memory_of(*text);
  }
  return bytes;
}

}  // namespace paceline::kube
