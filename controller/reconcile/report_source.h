#pragma once

// What the reconciler needs of the coordinators. Whoever wires the program adapts controller/coordinator to
// it, and calls Reconciler::notify(key) when a report changed in phase, view or verdict (not for every
// heartbeat). Thread-safe.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "controller/plan/observed.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/job_store.h"

namespace paceline::reconcile {

class ReportSource {
 public:
  virtual ~ReportSource() = default;
  // The job as it is stored, before everything else that is asked of it in a pass but pods_seen(). Where its
  // attempt (status.restarts.attempt) is higher than the last, the last one's coordinator ends, and a new one
  // that resumes from the newest checkpoint takes its place: at once, or where members were told to stop()
  // when they have left, or their pods have ended, and last_words_kept().
  virtual absl::Status job_seen(const std::string& /*key*/, const StoredJob& /*job*/) {
    return absl::OkStatus();
  }
  // It has ended and nothing of it is left, or it is gone from the store.
  virtual void job_over(const std::string& /*key*/) {}
  // Nothing: the job has no coordinator. Must not block.
  virtual std::optional<plan::JobReport> report(const std::string& key) = 0;
  // The cluster's view of the job's pods comes before job_seen() and every report(): the coordinator judges
  // better with it.
  virtual void pods_seen(const std::string& key, const std::vector<cluster::Pod>& pods) = 0;
  // These pods of a job whose members train are gone.
  virtual void pods_gone(const std::string& /*key*/, const std::vector<std::string>& /*names*/) {}
  // Nobody waits for these any longer (Plan::absent).
  virtual void members_absent(const std::string& /*key*/, const std::vector<plan::AbsentMember>& /*absent*/) {
  }
  // Plan::leader_finished.
  virtual void leader_finished(const std::string& /*key*/) {}
  // What the final report() of this attempt's coordinator says stands in the job's status.
  virtual void last_words_kept(const std::string& /*key*/, std::int64_t /*attempt*/) {}
  // The user wants the job to end in order, suspends or resizes it; its pods get SIGTERM next.
  virtual void stop(const std::string& key, const plan::StopMembers& stop) = 0;
  // How the job's pods reach its coordinator: PACELINE_COORDINATOR, PACELINE_TOKEN, PACELINE_LOG_LEVEL.
  virtual std::map<std::string, std::string> pod_environment(const std::string& key) = 0;
};

}  // namespace paceline::reconcile
