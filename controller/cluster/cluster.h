#pragma once

// The one interface through which the controller touches the world. Two implementations pass one contract
// test (tests/unit/controller/cluster): LocalCluster (this machine, cluster/local/) and KubeCluster (the
// Kubernetes REST API, cluster/kube/).
//
// Thread-safe. Every call has a deadline inside the implementation and returns absl::Status. Names are unique
// within a namespace; creating an object that exists returns ALREADY_EXISTS, deleting one that doesn't
// NOT_FOUND: callers choose deterministic names and treat both as success where the uid is theirs.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"

namespace paceline::cluster {

enum class PodPhase : std::uint8_t { kPending, kRunning, kSucceeded, kFailed };
const char* pod_phase_name(PodPhase phase);

// What the controller asks for.
struct PodSpec {
  std::string ns = "default";
  std::string name;  // <job>-<role>-<index>-<attempt>
  std::string job;   // owner
  std::string job_uid;
  Role role = Role::kWorker;
  int index = 0;
  int attempt = 0;
  std::vector<std::string> command;        // command and args; [0] is a path or a name in PATH
  std::map<std::string, std::string> env;  // added to the cluster's own, which has PACELINE_POD_UID
  int threads = 0;  // processors' worth of work that the pod may use; 0: as the cluster decides
  // Kubernetes: the user's PodTemplateSpec as JSON, to which all of the above is added; an empty command is
  // then the template's own. Elsewhere it means nothing.
  std::string pod_template;
  std::string priority_class;  // Kubernetes: where the template names none; empty: the cluster's default
  // Kubernetes: how long the pod may take to end when somebody else ends it (an eviction, a drained node),
  // where the template doesn't say; zero: as Kubernetes has it.
  Duration save_grace{};
  // Kubernetes: a container beside the trainer hears of the steps of the program in it, and attaches as the
  // member.
  bool hears_steps = false;
  std::vector<std::string> shunned_hosts;  // Kubernetes: nodes that it comes to only where no other has room
  std::string avoid_host;  // Kubernetes: a node that the pod must not come to; empty: it may come to any
  bool operator==(const PodSpec&) const = default;
};

// What the cluster says about it. A pod that ended by itself stays in the list; one that was deleted leaves
// the list when nothing of it runs any more, and its name is free again.
struct Pod {
  PodSpec spec;
  std::string uid;  // unique for all time
  PodPhase phase = PodPhase::kPending;
  bool deleting = false;
  bool ended_first = false;  // Kubernetes: deleting, and it had ended before anybody asked for that
  bool lingers = false;      // Kubernetes: it has ended, but containers beside its trainer run on
  // Kubernetes: it ran when its node was last heard, and the node does not answer, or says that it can't
  // work.
  bool node_not_ready = false;
  std::int64_t pid = 0;  // local: the process group, which is its first process; 0 on Kubernetes
  std::string host;
  std::optional<int> exit_code;  // finished by exit
  std::optional<int> signal;     // finished by a signal
  std::string reason;            // e.g. "Error", "StartError", "OOMKilled"
  std::string message;
  std::string log_path;  // local only
  std::optional<WallTime> started, finished;
  bool ended() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  // Nothing of it runs any more, and it holds nothing of a node's but its logs.
  bool all_ended() const { return ended() && !lingers; }
};

struct Event {
  std::string ns, job;
  bool warning = false;
  std::string reason, message;  // CamelCase; a sentence
  std::string job_uid;          // another job of the same name is another one
  bool operator==(const Event&) const = default;
};

// What a job has once, beside its pods: whatever its members need to find each other, and its token.
struct JobObjects {
  std::string ns, job, job_uid;
  std::string token;  // for a job that has none yet; empty: it needs none
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  // INVALID_ARGUMENT for a name that is no DNS label or an empty command; RESOURCE_EXHAUSTED where the
  // cluster has no room (nothing is left behind then); CANCELLED where nothing of this job can be created any
  // more, since its namespace is being deleted. A command that can't be started is no error of this
  // call: the pod becomes Failed with reason "StartError".
  virtual absl::StatusOr<Pod> create_pod(const PodSpec& spec) = 0;
  // Asks the pod to end: SIGTERM now, SIGKILL after `grace`. Returns at once; watchers see the end. May be
  // repeated to shorten the grace. An empty uid means any; another pod's uid gives NOT_FOUND.
  virtual absl::Status delete_pod(const std::string& ns, const std::string& name, const std::string& uid,
                                  Duration grace) = 0;
  // The job's pods, sorted by name. At least as new as what this object itself, or a leader before, created
  // and deleted.
  virtual absl::StatusOr<std::vector<Pod>> list_pods(const std::string& ns, const std::string& job) = 0;
  // Makes what is missing, and returns the token in force: the one that the job has, or else the given one.
  // To be called before the job's pods are created, and again whenever something may be missing: it costs
  // nothing when all is there. FAILED_PRECONDITION: an object of that name is somebody else's. A cluster that
  // needs no such objects returns the given token.
  virtual absl::StatusOr<std::string> ensure_job(const JobObjects& job) { return job.token; }
  virtual absl::Status record_event(const Event& event) = 0;
  // Called (from a thread of the cluster, without locks held) with the key "namespace/job" whenever something
  // about that job's objects changed. Level-triggered: receivers look at the state, not at the event.
  // One receiver; a new one replaces it, an empty one ends it: when this call returns, the old one runs no
  // more (so don't call it from the receiver).
  using OnChange = std::function<void(const std::string& key)>;
  virtual void watch(OnChange on_change) = 0;
  // The trouble that a host is known to be in, which may slow down or end what runs there, in words; empty:
  // none. The call may wait for seconds.
  virtual std::string host_trouble(const std::string& /*host*/) { return ""; }
  // The last lines of a pod's log, for error messages.
  virtual absl::StatusOr<std::string> tail_log(const Pod& pod, int lines) = 0;
};

}  // namespace paceline::cluster
