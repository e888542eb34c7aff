#pragma once

// The place where jobs are found: an API server, or the runs of this machine, which are shown as the same
// objects. The commands and the dashboard read and edit jobs by it alone. Errors are for people.

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/text.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/pod.h"

namespace paceline::jobs {

struct EventView {
  std::string key, resource_version;  // namespace/name
  std::optional<WallTime> last;       // when it was last seen
  std::int64_t count = 1;
  bool warning = false;
  std::string reason, object, message;  // object: "tj/digits", "pod/digits-worker-0-0"
};

// Says which part of a log is read.
struct LogRequest {
  std::string container;  // empty: the trainer, or the init container that failed
  std::optional<int> tail;
  std::optional<Duration> since;
  bool follow = false;  // until the log's pod has ended
  // Whether the job has ended, or a later pod has taken this one's place; what is there by then is all.
  std::function<bool()> over = nullptr;
};

// Takes a log's bytes as they come.
struct LogSink {
  std::function<bool(std::string_view)> bytes;          // false: nobody reads any more
  std::function<void(const std::string& text)> remark;  // such as: it broke off, and is read again
};

class JobSource {
 public:
  virtual ~JobSource() = default;

  // Objects of one moment; a watch goes on from their version.
  struct Listed {
    std::vector<kube::Json> objects;
    std::string resource_version;
  };
  // `ns` empty: of all namespaces.
  virtual absl::StatusOr<Listed> list_jobs(const std::string& ns) = 0;
  // NOT_FOUND names those that there are.
  virtual absl::StatusOr<kube::Json> job(const std::string& ns, const std::string& name) = 0;
  // The pods of all attempts, by role, index and attempt. None of a run: its members are in its status.
  virtual absl::StatusOr<std::vector<kube::SlimPod>> pods(const std::string& ns, const std::string& job) = 0;
  // The pods whose logs may be there, in the same order. Of a run: all that have logged, of all attempts.
  virtual absl::StatusOr<std::vector<kube::SlimPod>> logged_pods(const std::string& ns,
                                                                 const std::string& job) = 0;
  // Reads the log of a pod of logged_pods() into `sink`; several threads at once. OK: it has ended, or its
  // pod is gone, or a follower was asked to stop. CANCELLED: one that doesn't follow was asked to.
  virtual absl::Status read_log(const kube::SlimPod& pod, const LogRequest& request, const LogSink& sink,
                                std::stop_token stop) = 0;
  struct Events {
    std::vector<EventView> events;
    std::string resource_version;
  };
  // The events of the job and its pods, the newest last; `job` empty: of all jobs.
  virtual absl::StatusOr<Events> events(const std::string& ns, const std::string& job) = 0;
  // A merge patch; `what`: the verb, for errors. ABORTED: its metadata.uid is another job's.
  virtual absl::StatusOr<kube::Json> patch(const std::string& ns, const std::string& name,
                                           const kube::Json& patch, const std::string& what) = 0;
  // The object as it goes. `uid`: as check_uid() takes it. `propagation` as kubectl's --cascade, capitalised.
  virtual absl::StatusOr<kube::Json> remove(const std::string& ns, const std::string& name,
                                            const std::string& uid, const std::string& propagation) = 0;
};

// ABORTED: `object` is not the job that was meant, whose uid this is, but one that has taken its name. Empty:
// any job of that name is meant.
inline absl::Status check_uid(const kube::Json& object, const std::string& uid) {
  if (uid.empty() || kube::text_at(object, {"metadata", "uid"}) == uid) return absl::OkStatus();
  return absl::AbortedError(str_cat(kube::text_at(object, {"metadata", "namespace"}), "/",
                                    kube::text_at(object, {"metadata", "name"}),
                                    " is another job by now: the one that was meant is gone, and nothing is "
                                    "done to its successor; look at that one, and ask again"));
}

}  // namespace paceline::jobs
