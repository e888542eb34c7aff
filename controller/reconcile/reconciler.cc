// Order within one pass: the status is written after the actions, so that a pass that fails half-way is
// simply repeated: every action may be done twice. A pod that the cluster refuses is no half pass: the status
// says so (plan/rule_trouble.cc), and the creation is tried again. Events are recorded last of the actions
// that a repeated pass would repeat, and only when the others worked.
//
// The status that ends a job comes first, with the last log lines: its pods are what the end is known by, and
// a controller that finds some of them deleted, and no word of the end, would miss their members. Where
// members are told to leave, it comes first, too: somebody may take back what they leave for (a suspension, a
// new size) at that moment, and who has left by then would be missed.

#include "controller/reconcile/reconciler.h"

#include <algorithm>

#include "base/retry_after.h"
#include "base/status.h"
#include "controller/plan/attempts.h"
#include "controller/plan/pod_observations.h"
#include "controller/plan/rules.h"
#include "controller/reconcile/failed_log.h"
#include "controller/reconcile/progress.h"

namespace paceline::reconcile {

namespace {

constexpr Duration kIdle = std::chrono::hours(1);  // get() is woken by any key; this only bounds one call

bool does_not_start(const cluster::Pod& pod) {
  return pod.phase == cluster::PodPhase::kPending && !pod.deleting;
}

// Those of an earlier job of this name may not have ended yet: they are none of this one's.
void keep_pods_of(const std::string& uid, std::vector<cluster::Pod>& pods) {
  std::erase_if(pods, [&](const cluster::Pod& pod) { return pod.spec.job_uid != uid; });
}

// What is left of earlier attempts (their logs are kept) are no members.
bool any_members(const api::TrainingJob& job, const std::vector<cluster::Pod>& pods) {
  return std::ranges::any_of(pods, [&](const cluster::Pod& pod) {
    return pod.spec.attempt >= plan::wanted_attempt(job, pod.spec.role, pod.spec.index);
  });
}

// Its coordinator is still the last attempt's.
bool awaits_coordinator(const plan::Observed& observed) {
  return observed.report && observed.report->attempt < observed.job.status.restarts.attempt;
}

// Members that were told to leave have said all that they will say.
bool brings_last_words(const plan::Observed& observed) {
  if (!observed.report) return false;
  return plan::is_final(observed.report->state) &&
         (awaits_coordinator(observed) || observed.job.status.phase == api::Phase::kSuspended);
}

bool ends_job(const plan::Observed& observed, const plan::Plan& plan) {
  return plan::is_terminal(plan.status.phase) && !plan::is_terminal(observed.job.status.phase);
}

// The same call has no better chance later (a disk is full): that is no reason to leave pods as they are.
bool is_out_of_order(const absl::Status& store) {
  return !absl::IsAborted(store) && !absl::IsNotFound(store) && !absl::IsUnavailable(store) &&
         !absl::IsDeadlineExceeded(store);
}

bool is_creation(const plan::Action& action) {
  return std::holds_alternative<plan::CreatePod>(action);
}

}  // namespace

Reconciler::Reconciler(cluster::Cluster& cluster, JobStore& jobs, ReportSource& reports, const Clock& clock,
                       queue::WorkQueue& queue, plan::Limits limits, Logger log, ReconcilerOptions options)
    : cluster_(cluster),
      jobs_(jobs),
      reports_(reports),
      clock_(clock),
      queue_(queue),
      limits_(std::move(limits)),
      log_(std::move(log)),
      options_(std::move(options)),
      executor_(cluster, jobs, clock, log_, limits_.largest_batch, options_.create_threads) {
  cluster_.watch([this](const std::string& key) { notify(key); });
}

Reconciler::~Reconciler() {
  cluster_.watch({});
  queue_.shut_down();
  shared_.lock()->ended = true;
  workers_.clear();  // joins
}

void Reconciler::start() {
  shared_.lock()->working = options_.workers;
  for (int i = 0; i < options_.workers; ++i) {
    workers_.emplace_back([this] {
      work();
      --shared_.lock()->working;
    });
  }
}

bool Reconciler::drain(Duration timeout) {
  queue_.shut_down();
  bool drained = false;
  (void)shared_.lock_when([](const Shared& s) { return s.working == 0; }, timeout, &drained);
  return drained;
}

std::vector<std::shared_ptr<const JobSnapshot>> Reconciler::snapshots() {
  std::vector<std::shared_ptr<const JobSnapshot>> all;
  auto shared = shared_.lock();
  for (const auto& [key, memory] : shared->jobs) {
    if (memory.snapshot) all.push_back(memory.snapshot);
  }
  return all;
}

void Reconciler::note_state(const std::string& key, const plan::Observed& observed,
                            const api::Status& status) {
  api::TrainingJob job = observed.job;
  job.status = status;
  const std::shared_ptr<const JobSnapshot> before = shared_.lock()->jobs[key].snapshot;
  JobSnapshot next = next_snapshot(before.get(), std::move(job), observed.now);
  if (observed.report) next.learning_rate = observed.report->learning_rate;
  shared_.lock()->jobs[key].snapshot = std::make_shared<const JobSnapshot>(std::move(next));
}

void Reconciler::count_events(const plan::Plan& plan) const {
  for (const plan::Action& action : plan.actions) {
    const auto* const record = std::get_if<plan::RecordEvent>(&action);
    if (record != nullptr && options_.on_event) options_.on_event(record->event.reason);
  }
}

void Reconciler::forget(const std::string& key) {
  shared_.lock()->jobs.erase(key);
  reports_.job_over(key);
}

void Reconciler::stop(const std::string& key) {
  bool first;
  {
    auto shared = shared_.lock();
    plan::Stop& stop = shared->jobs[key].stop;
    first = stop == plan::Stop::kNo;
    stop = first ? plan::Stop::kOrderly : plan::Stop::kNow;
  }
  if (first) reports_.stop(key, {"the user stops the job"});
  queue_.add(key);
}

absl::StatusOr<api::Status> Reconciler::wait(const std::string& key, Duration timeout) {
  const auto ended = [&](const Shared& shared) {
    const auto found = shared.jobs.find(key);
    return shared.ended || (found != shared.jobs.end() && found->second.final_status.has_value());
  };
  bool in_time = false;
  auto shared = shared_.lock_when(ended, timeout, &in_time);
  const auto found = shared->jobs.find(key);
  if (found != shared->jobs.end() && found->second.final_status) return *found->second.final_status;
  if (in_time) return absl::CancelledError(str_cat("job ", key, ": the controller ends"));
  return absl::DeadlineExceededError(
      str_cat("job ", key, " has not ended within ", format_duration(timeout)));
}

void Reconciler::work() {
  while (!queue_.is_shut_down()) {
    const std::optional<std::string> key = queue_.get(kIdle);
    if (key) work_on(*key);
  }
}

void Reconciler::work_on(const std::string& key) {
  const TimePoint begun = clock_.now();
  const absl::StatusOr<plan::Plan> plan = reconcile_once(key);
  const bool gone = absl::IsNotFound(plan.status()), hopeless = absl::IsCancelled(plan.status()),
             left_alone = absl::IsFailedPrecondition(plan.status());
  if (options_.on_pass) {
    const bool well = plan.ok() || gone || hopeless || left_alone;
    options_.on_pass(!well                              ? "error"
                     : plan.ok() && plan->requeue_after ? "requeue_after"
                                                        : "success",
                     clock_.now() - begun);
  }
  if (plan.ok()) {
    queue_.forget(key);
    if (plan->requeue_after) queue_.add_after(key, *plan->requeue_after);
  } else if (gone) {
    forget(key);
    queue_.forget(key);
  } else if (left_alone) {
    log_left_alone(key, std::string(plan.status().message()));
    queue_.forget(key);
  } else if (hopeless) {
    // The job goes with its namespace, and the store will tell.
    const bool told = std::exchange(shared_.lock()->jobs[key].namespace_ends, true);
    if (!told)
      log_.info(
          str_cat("its namespace is being deleted, nothing more is created in it: ", plan.status().message()),
          {{"job", key}, {"reason", "NamespaceTerminating"}});
    queue_.forget(key);
  } else {
    const std::string said = str_cat(plan.status().message(), "; it is tried again");
    if (absl::IsAborted(plan.status())) {  // a user edits the job at this moment: nothing to worry about
      log_.debug(said, {{"job", key}, {"reason", "Changed"}});
    } else {
      log_.warning(said, {{"job", key}, {"reason", "ReconcileError"}});
    }
    const Duration asked = retry_after(plan.status()).value_or(Duration::zero());
    queue_.add_rate_limited(key, std::min(asked, kLongestRetryAfter));
  }
  queue_.done(key);
}

void Reconciler::log_left_alone(const std::string& key, const std::string& why) {
  {
    auto shared = shared_.lock();
    std::string& said = shared->jobs[key].left_alone;
    if (said == why) return;
    said = why;
  }
  log_.warning(why, {{"job", key}, {"reason", "LeftAlone"}});
}

absl::StatusOr<plan::Plan> Reconciler::reconcile_once(const std::string& key) {
  PL_ASSIGN_OR_RETURN(StoredJob stored, jobs_.get(key));
  shared_.lock()->jobs[key].left_alone.clear();
  absl::StatusOr<plan::Plan> plan = pass(key, std::move(stored));
  // What else is missing (a program, a folder) is no sign that the job is gone, nor to be left alone.
  if (absl::IsNotFound(plan.status()) || absl::IsFailedPrecondition(plan.status()))
    return absl::UnavailableError(plan.status().message());
  return plan;
}

absl::StatusOr<plan::Plan> Reconciler::pass(const std::string& key, StoredJob stored) {
  if (is_another(key, stored.uid)) PL_RETURN_IF_ERROR(end_earlier(key, stored));
  shared_.lock()->jobs[key].uid = stored.uid;
  absl::Status not_ready;
  const std::string version = stored.version;
  PL_ASSIGN_OR_RETURN(const plan::Observed observed, observe(key, std::move(stored), not_ready));
  plan::Plan plan = plan::plan(observed);
  if (!not_ready.ok() || awaits_coordinator(observed)) std::erase_if(plan.actions, is_creation);
  if (!plan::is_terminal(plan.status.phase) && !observed.deleted && !observed.pods.empty())
    executor_.ensure(key, observed);
  if (plan.failed_pod) add_last_lines(key, plan);
  if (!plan.absent.empty()) reports_.members_absent(key, plan.absent);
  if (!plan.gone.empty()) reports_.pods_gone(key, plan.gone);
  if (plan.leader_finished) reports_.leader_finished(key);
  absl::Status refused;
  absl::StatusOr<bool> written = false;
  const bool status_first = plan.stop_members || ends_job(observed, plan);
  if (status_first) written = write_status(key, observed, version, plan);
  if (written.ok() || (!plan.stop_members && is_out_of_order(written.status()))) {
    if (plan.stop_members) reports_.stop(key, *plan.stop_members);
    PL_RETURN_IF_ERROR(execute(key, plan, status_first, refused));
    count_events(plan);
    if (!status_first) written = write_status(key, observed, version, plan);
  }
  // Also where the store is out of order: who waits for the end must hear of it.
  if (plan.done) shared_.lock()->jobs[key].final_status = plan.status;
  note_state(key, observed, plan.status);
  PL_RETURN_IF_ERROR(written.status());
  if (plan.failed_pod) shared_.lock()->jobs[key].failed_log.reset();
  if (*written && brings_last_words(observed)) reports_.last_words_kept(key, observed.report->attempt);
  if (plan.done) reports_.job_over(key);
  if (options_.pending_look > Duration::zero() && std::ranges::any_of(observed.pods, does_not_start)) {
    plan.requeue_after = std::min(plan.requeue_after.value_or(options_.pending_look), options_.pending_look);
  }
  PL_RETURN_IF_ERROR(refused);
  PL_RETURN_IF_ERROR(not_ready);
  return plan;
}

void Reconciler::add_last_lines(const std::string& key, plan::Plan& plan) {
  const cluster::Pod& pod = *plan.failed_pod;
  const api::Fault* const fault = plan.status.fault ? &*plan.status.fault : nullptr;
  if (!may_have_log(fault, pod)) return;
  std::optional<Memory::FailedLog> log = shared_.lock()->jobs[key].failed_log;
  if (!log || log->uid != pod.uid || log->ended != pod.ended()) {
    log =
        Memory::FailedLog{.uid = pod.uid,
                          .ended = pod.ended(),
                          .tail = lines_to_tell(cluster_.tail_log(pod, kFailedLogLines).value_or(""), fault)};
    shared_.lock()->jobs[key].failed_log = log;
  }
  if (log->tail.empty()) return;
  const std::string& path = pod.log_path;
  plan.status.message += str_cat(
      "\nlast lines of ", path.empty() ? str_cat("pod ", pod.spec.name, "'s log") : path, ":\n", log->tail);
}

absl::StatusOr<plan::Observed> Reconciler::observe(const std::string& key, StoredJob stored,
                                                   absl::Status& not_ready) {
  plan::Observed observed;
  const api::Metadata& metadata = stored.job.metadata;
  PL_ASSIGN_OR_RETURN(observed.pods, cluster_.list_pods(metadata.ns, metadata.name));
  keep_pods_of(stored.uid, observed.pods);
  reports_.pods_seen(key, observed.pods);  // those of the last attempt tell whether its coordinator may go
  not_ready = reports_.job_seen(key, stored);
  // Members that are there already are judged with their coordinator only; a job without any says why, and so
  // does one that is refused.
  if (!not_ready.ok() && any_members(stored.job, observed.pods)) {
    if (!absl::IsFailedPrecondition(not_ready)) return not_ready;
    observed.refusal = std::string(not_ready.message());
  }
  reports_.pods_seen(key, observed.pods);
  (stored.job.spec.training ? observed.report : observed.told) = reports_.report(key);
  observed.coordinator_env = reports_.pod_environment(key);
  observed.job = std::move(stored.job);
  ask_for_hosts(observed);
  observed.job_uid = std::move(stored.uid);
  observed.deleted = stored.deleted;
  observed.generation = stored.generation;
  observed.keeps_checkpoints = stored.keeps_checkpoints;
  observed.now = clock_.wall_now();
  observed.limits = limits_;
  note_pod_observations(key, observed);
  auto shared = shared_.lock();
  Memory& memory = shared->jobs[key];
  memory.creations.pod_templates = std::move(stored.pod_templates);
  observed.stop = memory.stop;
  observed.create_failure = memory.creations.failure;
  if (!not_ready.ok()) {
    observed.create_failure =
        plan::CreateFailure{1, str_cat(observed.job.metadata.name, "-*"), std::string(not_ready.message())};
  }
  return observed;
}

bool Reconciler::is_another(const std::string& key, const std::string& uid) {
  auto shared = shared_.lock();
  const std::string& known = shared->jobs[key].uid;
  return !known.empty() && known != uid;
}

absl::Status Reconciler::end_earlier(const std::string& key, const StoredJob& stored) {
  const api::Metadata& metadata = stored.job.metadata;
  for (plan::Stop carried_out = plan::Stop::kNo;;) {
    std::string earlier;
    plan::Stop stop;
    {
      auto shared = shared_.lock();
      Memory& memory = shared->jobs[key];
      earlier = memory.uid;
      stop = memory.stop;
      if (stop == carried_out) {
        memory = Memory{.uid = stored.uid};
        break;
      }
    }
    // With their owner gone they will go, too, where the cluster sees to that.
    PL_ASSIGN_OR_RETURN(std::vector<cluster::Pod> pods, cluster_.list_pods(metadata.ns, metadata.name));
    keep_pods_of(earlier, pods);
    const bool now = stop == plan::Stop::kNow;
    for (const cluster::Pod& pod : pods) {
      if (pod.all_ended() || (pod.deleting && !now)) continue;
      PL_RETURN_IF_ERROR(executor_.perform(key, plan::DeletePod{pod.spec.ns, pod.spec.name, pod.uid,
                                                                now ? Duration::zero() : limits_.stop_grace,
                                                                "the user stopped its job, which is gone"}));
    }
    carried_out = stop;
  }
  log_.info("another job has the name of one that is gone", {{"job", key}, {"reason", "Replaced"}});
  reports_.job_over(key);
  queue_.forget(key);
  return absl::OkStatus();
}

void Reconciler::ask_for_hosts(plan::Observed& observed) {
  const bool looks = observed.job.spec.stragglers.action != api::StragglerPolicyAction::kIgnore;
  if (!looks || !observed.report || !observed.report->stragglers) return;
  for (const api::Straggler& straggler : *observed.report->stragglers) {
    for (const cluster::Pod& pod : observed.pods) {
      const bool is_its = pod.spec.name == straggler.pod || pod.spec.name == straggler.peer_pod;
      if (!is_its || pod.host.empty() || observed.host_troubles.contains(pod.host)) continue;
      observed.host_troubles[pod.host] = cluster_.host_trouble(pod.host);
    }
  }
}

void Reconciler::note_pod_observations(const std::string& key, plan::Observed& observed) {
  auto shared = shared_.lock();
  plan::PodObservations& seen = shared->jobs[key].seen;
  observed.seen = std::move(seen);
  if (plan::is_terminal(observed.job.status.phase)) {
    observed.seen.clear();  // nobody asks any more
  } else {
    plan::note_pod_observations(observed);
  }
  seen = observed.seen;
}

absl::Status Reconciler::execute(const std::string& key, const plan::Plan& plan, bool status_first,
                                 absl::Status& refused) {
  Creations creations = std::move(shared_.lock()->jobs[key].creations);  // this pass alone touches them
  const absl::Status status = executor_.execute(key, plan, status_first, creations, refused);
  shared_.lock()->jobs[key].creations = std::move(creations);
  return status;
}

absl::StatusOr<bool> Reconciler::write_status(const std::string& key, const plan::Observed& observed,
                                              const std::string& version, plan::Plan& plan) {
  const api::Status& before = observed.job.status;
  if (plan.status == before) return true;
  const TimePoint now = clock_.now();
  if (!plan.done && !brings_last_words(observed) && same_but_for_progress(before, plan.status)) {
    auto shared = shared_.lock();
    const std::optional<TimePoint>& written = shared->jobs[key].progress_written;
    if (written && now - *written < options_.progress_interval) {
      const Duration left = options_.progress_interval - (now - *written);
      if (!plan.requeue_after || left < *plan.requeue_after) plan.requeue_after = left;
      return false;
    }
  }
  PL_RETURN_IF_ERROR(
      with_context_and_time(jobs_.write_status(key, plan.status, version), "writing the status"));
  shared_.lock()->jobs[key].progress_written = now;
  return true;
}

}  // namespace paceline::reconcile
