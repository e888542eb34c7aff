#pragma once

// A Kubernetes cluster: Cluster over the API server's REST interface. Pods, and the jobs' Services, are kept
// by informers; what is written is seen at once by who wrote it. Names are deterministic, so whatever the
// copy's age, nothing is made twice.
//
// list_pods() is UNAVAILABLE until the first lists are complete (wait_synced()): a pod that is not known
// looks like one that is gone. create_pod() and ensure_job(): RESOURCE_EXHAUSTED where a
// quota is used up; CANCELLED in a namespace that is being deleted; UNAVAILABLE where an object of that name
// has not gone yet with an earlier job of this name; FAILED_PRECONDITION where it is no job's; other errors
// as api_error.h says. delete_pod(): a grace below one second is one second: less would free the name while
// the processes may run.
//
// ensure_job() gives a Service that an earlier version made the selector of this one's.
//
// host_trouble() asks for the node no more often than kBetweenNodeLooks (node_troubles.h); where it may not,
// as with rights in one namespace, nothing is known.
//
// Of a pod that has a node and does not start, list_pods() asks the API server for its events
// (pending_notes.h), and gives their reason and message as the pod's.
//
// Thread-safe. Threads: one for each of the two informers, one that calls the watcher.

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "controller/cluster/cluster.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/change_feed.h"
#include "controller/cluster/kube/event_series.h"
#include "controller/cluster/kube/informer.h"
#include "controller/cluster/kube/manifest.h"
#include "controller/cluster/kube/node_troubles.h"
#include "controller/cluster/kube/object_store.h"
#include "controller/cluster/kube/pending_notes.h"
#include "controller/cluster/kube/pod.h"

namespace paceline::kube {

inline constexpr std::size_t kTailLimitBytes = 1 << 20;  // tail_log() asks for no more than this
// Of one tail_log(). The API server tries for 30 s to reach a node that is cut off, and a restart waits for
// the log.
inline constexpr Duration kTailLimit = std::chrono::seconds(2);
// Of the question why a pod does not start, for which a pass waits.
inline constexpr Duration kQuestionLimit = std::chrono::seconds(2);
inline constexpr std::size_t kMaxRememberedJobs = 100'000;
// Secrets are not watched (that would take the right to list all): ensure_job() looks whether the job's is
// still there, no more often than this, and less often where there are so many jobs that it would be more
// than one look per kBetweenSecretLooks; and at once where a pod can't start for want of it.
inline constexpr Duration kSecretLook = std::chrono::seconds(30);
inline constexpr Duration kBetweenSecretLooks = std::chrono::seconds(1);
inline constexpr Duration kSecretLookOfOne = std::chrono::seconds(10);  // where it is a pod that lacks it

struct KubeClusterOptions {
  std::string ns;        // empty: all namespaces
  std::string image;     // of trainer containers that name none
  std::string instance;  // of the controller, in its events: its pod's name
  NodeSigns node_signs;
  std::uint64_t seed = 1;
  Pause pause = real_pause;
};

class KubeCluster final : public cluster::Cluster {
 public:
  // The references must outlive it. The informers start at once.
  KubeCluster(ApiClient& api, const Clock& clock, Logger log, KubeClusterOptions options);
  ~KubeCluster() override { feed_.set_receiver({}); }

  // Lists pods and services again (Informer::list_again()).
  void list_again();
  absl::Status wait_synced(Duration timeout);

  absl::StatusOr<cluster::Pod> create_pod(const cluster::PodSpec& spec) override;
  absl::Status delete_pod(const std::string& ns, const std::string& name, const std::string& uid,
                          Duration grace) override;
  absl::StatusOr<std::vector<cluster::Pod>> list_pods(const std::string& ns, const std::string& job) override;
  absl::StatusOr<std::string> ensure_job(const cluster::JobObjects& job) override;
  absl::Status record_event(const cluster::Event& event) override;
  void watch(OnChange on_change) override;
  std::string host_trouble(const std::string& host) override;
  absl::StatusOr<std::string> tail_log(const cluster::Pod& pod, int lines) override;

 private:
  // A Service of a job: whether it is there, and whose it is.
  struct Child {
    std::string key, job_key, resource_version, owner;
    bool selects_pods = false;
    bool operator==(const Child&) const = default;
  };
  // What was ensured of a job.
  struct Known {
    std::string uid, token;
    TimePoint seen;                   // when its Secret was last known to be there
    std::optional<TimePoint> lacked;  // when it was last looked for because a pod lacked it
  };
  struct Kept {
    std::map<std::string, Known> jobs;  // by key
    std::optional<TimePoint> looked;    // when any was last looked for by itself
  };
  static std::optional<Child> child_of(const Json& object);
  absl::Status ensure_service(const Owner& owner);
  absl::Status create_service(const Owner& owner);
  absl::StatusOr<std::string> ensure_secret(const Owner& owner, const std::string& token);
  absl::StatusOr<std::string> token_in_secret(const Owner& owner, const std::string& name);
  absl::StatusOr<std::string> earlier_token(const Owner& owner);
  void ask_why_pending(const PendingNotes::Pods& pods);
  bool may_look_for_secret(Kept& kept, Known& known, bool lacked);
  bool lacks_its_secret(const std::string& job_key);
  absl::Status write_event(const cluster::Event& event, const std::string& name);

  ApiClient& api_;
  const Clock& clock_;
  const KubeClusterOptions options_;
  ChangeFeed feed_;
  ObjectStore<SlimPod> pod_store_;
  ObjectStore<Child> service_store_;
  Guarded<Kept> kept_;
  Guarded<EventSeries> events_;
  Guarded<PendingNotes> notes_;
  Guarded<NodeTroubles> nodes_;
  Informer pods_, services_;  // last: they call into the above
};

}  // namespace paceline::kube
