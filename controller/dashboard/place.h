#pragma once

// The place of a dashboard's jobs: this machine or a cluster. Thread-safe; calls may block, and are made by
// the dashboard's workers.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/job_series.h"
#include "controller/jobs/job_source.h"

namespace paceline::dashboard {

class JobHistory;

// Somebody at a dashboard.
struct Viewer {
  std::string user;
  std::string token;  // the API server's, of his own; empty: he has the rights of the dashboard's process
};

class Place {
 public:
  virtual ~Place() = default;

  // {"place": "Local" or "Cluster", ...}: docs/dashboard-api.md, Session.
  virtual kube::Json about() const = 0;

  // Reads and edits jobs with the viewer's rights; for one thread.
  virtual absl::StatusOr<std::unique_ptr<jobs::JobSource>> source(const Viewer& viewer) = 0;
  // A job's removal takes long, because what it runs is stopped first.
  virtual bool removes_slowly() const { return false; }
  // The job as its user wrote it.
  virtual absl::StatusOr<std::string> yaml(const kube::Json& object) = 0;
  // Calls `use` with what is known of the job's steps by now.
  virtual absl::Status use_series(const kube::Json& object,
                                  const std::function<void(const JobSeries&)>& use) = 0;
  // The history of jobs that are deleted; null: none is kept here.
  virtual JobHistory* history() { return nullptr; }
  // Becomes an event of the job: what a user did, or what came of it. An error: nothing can be done to the
  // job here, either.
  virtual absl::Status record(const kube::Json& object, bool warning, std::string_view reason,
                              std::string_view message) = 0;
};

}  // namespace paceline::dashboard
