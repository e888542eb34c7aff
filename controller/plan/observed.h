#pragma once

// Everything that a plan may depend on, as plain values. Whoever observes (controller/reconcile) fills it in.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controller/api/types.h"
#include "controller/cluster/cluster.h"

namespace paceline::plan {

// ---- what the job's coordinator says

enum class JobState : std::uint8_t { kForming, kRunning, kDraining, kFinished, kFailed, kStopped };
const char* job_state_name(JobState state);
constexpr bool is_final(JobState state) {
  return state >= JobState::kFinished;
}

// One that has attached. Its phase is its own word: training, waiting, ...; "leaving": at its end, but not
// finished.
struct ReportedMember : api::MemberStatus {
  bool finished = false;  // it has said that its work is done, and left
};

// A place, and the number of a pod in it.
struct Incarnation {
  Role role = Role::kWorker;
  int index = 0;
  std::int64_t number = 0;
  bool operator==(const Incarnation&) const = default;
};

// It is gone, and the others go on without it: no reason to end or to restart anything.
struct LostMember {
  api::Fault fault;
  Duration age{};  // since the coordinator said so
};

// The newest attempt to write a checkpoint.
struct LastSave {
  Step step = 0;
  std::string error;  // empty: it is written
  bool operator==(const LastSave&) const = default;
};

// The answer to a request for a checkpoint (requests.h).
struct SaveAnswer {
  std::string request;
  Step step = 0;
  std::string error;  // empty: it is written
  bool operator==(const SaveAnswer&) const = default;
};

// A ring waits, with what its members have trained: too few are here for a view.
struct Shortage {
  int here = 0;     // of those who train
  int missing = 0;  // so many more make a view
  bool operator==(const Shortage&) const = default;
};

struct JobReport {
  std::int64_t attempt = 0;  // status.restarts.attempt when this coordinator began
  JobState state = JobState::kForming;
  Duration in_state{};    // since it came into it
  Generation generation;  // of the present or last view
  std::vector<ReportedMember> members;
  std::vector<LostMember> lost;            // whose places nobody has taken
  std::vector<std::string> refused;        // uids of pods whose token is not the job's: they never join
  std::optional<Incarnation> handed_over;  // the newest: this pod has the place of one that was slow
  std::string successor_phase;             // of one that is to take over a place; empty: it has not attached
  std::optional<api::ViewChange> view_change;  // how the newest view began that another one was before
  std::optional<api::Rebalance> rebalance;     // the newest
  std::optional<api::Preflight> preflight;     // likewise
  std::optional<std::vector<api::Straggler>> stragglers;  // nothing: too few steps are known
  std::vector<std::string> cleared;                       // pods that were slow, and are no more
  std::optional<api::Fault> fault;                        // its verdict: the root cause
  Duration fault_age{};                                   // since the verdict
  std::optional<Shortage> shortage;                       // kForming alone
  std::string reason;                                     // kFailed without a fault: why
  api::Progress progress;
  std::optional<double> learning_rate;      // of the last step
  std::string model_path, checkpoint_path;  // results; empty: none
  std::optional<LastSave> last_save;        // nothing: this coordinator has heard of none
  std::optional<SaveAnswer> save_answer;    // the newest
};

// ---- the rest of the world

enum class Stop : std::uint8_t { kNo, kOrderly, kNow };

// What the cluster and its operator allow.
struct Limits {
  int cores = 1;     // to share out among the job's pods; 0: each uses what its container may
  int free_mib = 0;  // of the machine's memory, where all pods run on it, before the first; 0: not known
  std::vector<std::string> worker_program;  // the runtime's own worker: command and first arguments
  // A program that becomes the command behind it, and hears of its steps: command and first arguments.
  std::vector<std::string> step_teller;
  // The first of the free ports at which programs of jobs without training meet, where all pods run on this
  // machine. 0: pods have host names of their own.
  int first_port = 0;
  std::string base_folder;  // relative paths of commands start here; empty: left as they are
  int first_batch = 4;      // pods created at first; each later batch may double their number
  int largest_batch = 64;
  int create_failures = 5;  // in a row, then the job fails; 0: never, it is tried again and again
  Duration stop_grace = std::chrono::seconds(10);
  Duration failure_grace = std::chrono::seconds(1);  // for the pods that are left when a job has failed
  // For the leader's pod, which may be writing a checkpoint or begin to: it ends by itself, as soon as it
  // can.
  Duration save_grace = std::chrono::seconds(310);
  Duration finish_grace = std::chrono::seconds(10);    // for pods that stay although the job has finished
  Duration attach_timeout = std::chrono::seconds(60);  // a running pod that does not join by then has failed
  // A pod failed: wait so long for the verdict. A machine that is busy takes seconds to hear why a member
  // left.
  Duration verdict_grace = std::chrono::seconds(5);
  Duration exit_grace = std::chrono::milliseconds(700);  // a verdict is there: so long for the exit status
  Duration report_grace = std::chrono::seconds(2);       // all pods ended well: so long for the last report
  Duration first_back_off =
      std::chrono::seconds(1);  // before the second restart in a row; the first is at once
  Duration longest_back_off = std::chrono::minutes(5);  // it doubles up to this
  Duration healthy_after =
      std::chrono::minutes(10);  // of training: the next restart is again the first in a row
  // A member fell silent, and no more restarts may be charged: so long it may take until its node shows to be
  // lost. Kubernetes takes 50 s to miss a node, and its pods tolerate that for 300 s.
  Duration settle_time = std::chrono::minutes(6);
  int disruptions = 1000;  // restarts that are not the job's fault, then the job has failed
  Duration refresh = std::chrono::seconds(1);  // of a running job's status
};

// The last attempts to create a pod were refused by the cluster.
struct CreateFailure {
  int count = 0;  // in a row
  std::string pod, error;
};

// Since when the observer has seen a pod in this phase, by its own clock (pod_observations.h).
struct PodObservation {
  cluster::PodPhase phase = cluster::PodPhase::kPending;
  WallTime since{};
};
using PodObservations = std::map<std::string, PodObservation>;  // by uid

struct Observed {
  api::TrainingJob job;
  std::string job_uid;
  SpecGeneration generation;      // metadata.generation
  bool deleted = false;           // the job itself is being deleted
  bool keeps_checkpoints = true;  // a later attempt finds those of this one
  std::vector<cluster::Pod> pods;
  PodObservations seen;
  std::optional<JobReport> report;  // nothing: there is no coordinator
  // The programs of a job without training tell this of their steps. It is shown, and decides nothing.
  std::optional<JobReport> told;
  std::map<std::string, std::string>
      coordinator_env;  // how pods reach it: PACELINE_COORDINATOR, PACELINE_TOKEN, ...
  std::optional<CreateFailure> create_failure;
  std::string refusal;  // the reason why the members that are there have no coordinator; empty: they may
  std::map<std::string, std::string>
      host_troubles;  // Cluster::host_trouble(), of hosts whose members are slow
  // Times of objects (a job's start, a pod's end) are wall times because they outlive controllers.
  WallTime now{};
  Limits limits;
  Stop stop = Stop::kNo;
};

}  // namespace paceline::plan
