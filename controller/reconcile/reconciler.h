#pragma once

// The loop: observe -> plan -> execute, for every job whose key is in the queue. Level-triggered: a key means
// "look", never what happened. Several workers; the queue hands a key to one of them at a time. Pods are
// created several at a time, with slow start (parallel.h).
//
// Woken by the cluster's watch, by notify(), and by a plan's requeue_after. A failed action is retried with
// the queue's back-off, and no earlier than a server asked for (retry_after.h), but where its namespace is
// being deleted: then only changes are looked at; changes are looked at meanwhile, too, but no pod is created
// before the time. A pod that exists already, or that is gone already, counts as success. The status is
// written last (where members are told to leave, or the job ends: first), only when it changed, and where
// nothing but progress changed, at most once per kProgressInterval; where the job has changed meanwhile it is
// not written, and the job looked at again.
//
// A job that is deleted and made again under its name between two passes is another one: what is remembered
// of the one before, and its coordinator, are no more.
//
// Thread-safe. The constructor's references must outlive it. It takes the cluster's watch for itself.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "controller/cluster/cluster.h"
#include "controller/plan/plan.h"
#include "controller/queue/work_queue.h"
#include "controller/reconcile/executor.h"
#include "controller/reconcile/job_snapshot.h"
#include "controller/reconcile/job_store.h"
#include "controller/reconcile/report_source.h"

namespace paceline::reconcile {

inline constexpr Duration kProgressInterval = std::chrono::seconds(1);
inline constexpr int kFailedLogLines = 10;  // of the failed pod's log, appended to the status' message

struct ReconcilerOptions {
  int workers = 1;
  int create_threads = 0;  // beside the workers themselves, for all jobs together
  Duration progress_interval = kProgressInterval;
  Duration pending_look{};  // how often to look at pods that do not start; zero: their changes tell
  // After every pass: "success", "requeue_after" or "error".
  std::function<void(std::string_view result, Duration time)> on_pass;
  std::function<void(std::string_view reason)> on_event;  // that a pass has recorded
};

class Reconciler {
 public:
  Reconciler(cluster::Cluster& cluster, JobStore& jobs, ReportSource& reports, const Clock& clock,
             queue::WorkQueue& queue, plan::Limits limits, Logger log, ReconcilerOptions options = {});
  // Ends the workers after the passes under way. Pods are left as they are.
  ~Reconciler();
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  // Starts the workers. Once.
  void start();
  // No key is taken any more; waits for the passes under way. False: some are not done after `timeout`.
  bool drain(Duration timeout);
  // The jobs that were worked on and are not gone, by their keys' order.
  std::vector<std::shared_ptr<const JobSnapshot>> snapshots();
  // Something about this job changed: look at it.
  void notify(const std::string& key) { queue_.add(key); }
  // The first call asks the job's pods to end in order; the second kills them. Returns at once.
  void stop(const std::string& key);
  // Waits until the job has ended and none of its pods runs any more, and returns its last status.
  // DEADLINE_EXCEEDED after `timeout`, CANCELLED when the reconciler ends first.
  absl::StatusOr<api::Status> wait(const std::string& key, Duration timeout);

  // One pass over one job in the caller's thread: for tests, instead of start(). NOT_FOUND: the store has no
  // such job, FAILED_PRECONDITION: the store wants it left as it is, and nothing else. CANCELLED: nothing can
  // be created for it any more (Cluster::create_pod()).
  absl::StatusOr<plan::Plan> reconcile_once(const std::string& key);
  // A worker's part for a key that it was handed: a pass, and the key's return to the queue. In the
  // caller's thread, instead of start(), where a test hands out the keys.
  void work_on(const std::string& key);

 private:
  // What is remembered about a job between passes; the cluster and the store have the rest.
  struct Memory {
    std::string uid;  // whose all of this is; empty before the first pass
    plan::Stop stop = plan::Stop::kNo;
    Creations creations;
    std::optional<TimePoint> progress_written;
    plan::PodObservations seen;
    std::optional<api::Status> final_status;
    std::shared_ptr<const JobSnapshot> snapshot;  // none before the first pass
    bool namespace_ends = false;                  // so it was said
    std::string left_alone;                       // why, as it was said
    // Of the pod that the pass under way blames: a pass that is repeated asks for it no more.
    struct FailedLog {
      std::string uid;  // the pod's
      bool ended = false;
      std::string tail;
    };
    std::optional<FailedLog> failed_log;
  };
  struct Shared {
    std::map<std::string, Memory> jobs;
    bool ended = false;
    int working = 0;
  };

  void note_state(const std::string& key, const plan::Observed& observed, const api::Status& status);
  void count_events(const plan::Plan& plan) const;
  void work();
  // Once for each reason.
  void log_left_alone(const std::string& key, const std::string& why);
  absl::StatusOr<plan::Plan> pass(const std::string& key, StoredJob stored);
  // `not_ready`: why what comes before the first pod can't be had.
  absl::StatusOr<plan::Observed> observe(const std::string& key, StoredJob stored, absl::Status& not_ready);
  // What is remembered is about an earlier job of this name.
  bool is_another(const std::string& key, const std::string& uid);
  // From now on the name is this one's: an earlier job's coordinator ends, its pods too where the user was
  // stopping it, and nothing of it is remembered.
  absl::Status end_earlier(const std::string& key, const StoredJob& stored);
  // Adds the last lines of the failed pod's log to the message.
  void add_last_lines(const std::string& key, plan::Plan& plan);
  // Since when its pods have been seen as they are.
  void ask_for_hosts(plan::Observed& observed);  // whose members are slow
  void note_pod_observations(const std::string& key, plan::Observed& observed);
  // `refused`: why a pod could not be created.
  absl::Status execute(const std::string& key, const plan::Plan& plan, bool status_first,
                       absl::Status& refused);
  void forget(const std::string& key);
  // False: it waits for its turn.
  absl::StatusOr<bool> write_status(const std::string& key, const plan::Observed& observed,
                                    const std::string& version, plan::Plan& plan);

  cluster::Cluster& cluster_;
  JobStore& jobs_;
  ReportSource& reports_;
  const Clock& clock_;
  queue::WorkQueue& queue_;
  const plan::Limits limits_;
  const Logger log_;
  const ReconcilerOptions options_;

  Guarded<Shared> shared_;
  Executor executor_;
  std::vector<std::jthread> workers_;
};

}  // namespace paceline::reconcile
