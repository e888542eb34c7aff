#pragma once

// One job on this machine: constructs and wires LocalCluster, the coordinators and the reconcile loop, as the
// controller does for a cluster, all in this process; keeps the job, and hands what happens to the command's
// thread.
//
// Threads: take_events() and wake_fd() belong to the command's thread; the others may be called from any.
// Destruction stops whatever still runs, in bounded time.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/state/run_edits.h"
#include "controller/api/types.h"
#include "controller/coordinator/report.h"
#include "controller/reconcile/coordinators.h"

namespace paceline::cli {

struct LocalRunOptions {
  api::TrainingJob job;
  std::string job_uid;
  std::string base_folder;  // relative paths of the job are relative to it
  std::string run_folder;
  std::string program_folder;  // where paceline lies: paceline-worker and paceline-pod are beside it, or in
                               // ../libexec/paceline
  std::string log_level = "info";
  std::int64_t resumes_from = 0;  // reconcile::CoordinatorsOptions
  std::string resume_text;        // of a suspended run: how it goes on
  reconcile::OnViewChange on_view_change = nullptr;
};

// The job goes on without a member, begins again or waits; an evaluator is replaced or is not. In a sentence.
struct RunNote {
  std::string message;
};

using RunEvent = std::variant<coordinator::ViewRecord, api::ViewChange, coordinator::StragglerChange,
                              api::StragglerReplacement, api::Preflight, api::Rebalance, RunNote,
                              coordinator::EvaluationRecord, coordinator::CheckpointRecord,
                              std::vector<coordinator::StepRecord>, coordinator::MemberSteps>;

class LocalRun {
 public:
  // Starts the job and hands it over, also where that failed: its end then may be waited for, as any other's,
  // and its other functions are not to be called. NOT_FOUND where a companion program is missing, else what
  // the system refused. One of another version finds that out itself (PACELINE_VERSION), and the run fails
  // with its message.
  static absl::Status start(LocalRunOptions options, const Clock& clock, std::unique_ptr<LocalRun>& run);
  virtual ~LocalRun() = default;

  // The report is of the present attempt; times count from the beginning of the first.
  virtual coordinator::Report report() const = 0;
  virtual api::Status status() const = 0;  // as the controller last wrote it
  // The user has edited the job.
  virtual void edit(const RunEdit& edit) = 0;
  virtual std::vector<RunEvent> take_events() = 0;
  // An eventfd that becomes readable when there are events, when the status changed, or when the run has
  // ended.
  virtual int wake_fd() const = 0;
  // The first call asks the members to end in order; the second one kills them. Returns at once.
  virtual void stop() = 0;
  // This process has not gone on for so long: an event says so.
  virtual void stood_still(Duration duration) = 0;
  // The job has ended and none of its processes is left.
  virtual bool ended() const = 0;
};

// The reason of that event.
inline constexpr char kOwnerStoodStill[] = "OwnerStoodStill";

// How many events may wait for the command's thread: step records are dropped first, views, evaluations and
// checkpoints only when as many again of those wait.
inline constexpr std::size_t kMaxWaitingStepEvents = 4096;
inline constexpr std::size_t kMaxWaitingEvents = 2 * kMaxWaitingStepEvents;

}  // namespace paceline::cli
