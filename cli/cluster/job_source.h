#pragma once

// Commands find jobs in one of two places: an API server (job_client.h), or the runs of this machine
// (cli/commands/run_source.h), which are shown as the same objects. Errors are for people.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/cluster/event_rows.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/pod.h"

namespace paceline::cli {

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
  // The one of that name; where it is empty, the newest that goes on, else the newest.
  virtual absl::StatusOr<kube::Json> choose(const std::string& ns, const std::string& name) = 0;
  // The pods of all attempts, by role, index and attempt. None of a run: its members are in its status.
  virtual absl::StatusOr<std::vector<kube::SlimPod>> pods(const std::string& ns, const std::string& job) = 0;
  struct Events {
    std::vector<EventView> events;
    std::string resource_version;
  };
  // The events of the job and its pods, the newest last; `job` empty: of all jobs.
  virtual absl::StatusOr<Events> events(const std::string& ns, const std::string& job) = 0;
  // A merge patch; `what`: the verb, for errors.
  virtual absl::StatusOr<kube::Json> patch(const std::string& ns, const std::string& name,
                                           const kube::Json& patch, const std::string& what) = 0;
  // The object as it goes; `propagation` as kubectl's --cascade, capitalised.
  virtual absl::StatusOr<kube::Json> remove(const std::string& ns, const std::string& name,
                                            const std::string& propagation) = 0;
  // Whether the object of this uid is still there.
  virtual absl::StatusOr<bool> exists(const std::string& ns, const std::string& name,
                                      const std::string& uid) = 0;

  // How results name a job: "trainingjob.paceline.dev/digits"; a run: "digits".
  virtual std::string reference(const std::string& name) const = 0;
  // The words behind its name in commands: " -n team-a"; of a run: nothing.
  virtual std::string where(const std::string& ns) const = 0;
  // Says that there are none, and what helps; empty: nothing is to be said.
  virtual std::string none(const std::string& ns, const std::string& program) const = 0;
};

}  // namespace paceline::cli
