// Order within one pass: the status that ends a job is made complete (last log lines) before its pods are
// deleted, because their logs may go with them; it is written after the actions, so that a pass that fails
// half-way is simply repeated: every action may be done twice. A pod that the cluster refuses is no half
// pass: the status says so (plan/rule_trouble.cc), and the creation is tried again. Events are recorded last
// of the actions that a repeated pass would repeat, and only when the others worked.
//
// Where members are told to leave, the status comes first: somebody may take back what they leave for (a
// suspension, a new size) at that moment, and who has left by then would be missed.

#include "controller/reconcile/reconciler.h"

#include <algorithm>

#include "base/retry_after.h"
#include "base/status.h"
#include "controller/plan/attempts.h"
#include "controller/plan/rules.h"
#include "controller/plan/sightings.h"

namespace paceline::reconcile {

namespace {

constexpr Duration kIdle = std::chrono::hours(1);  // get() is woken by any key; this only bounds one call
constexpr Duration kLongestAsked = std::chrono::minutes(10);  // by Retry-After

// Of what a command printed, what fits into an error: no escape sequences, no endless lines.
std::string shown(const std::string& log) {
  constexpr std::size_t kMaxLineBytes = 400;
  std::string text;
  std::size_t line = 0;
  for (const char c : log) {
    const auto byte = static_cast<unsigned char>(c);
    line = c == '\n' ? 0 : line + 1;
    if (line > kMaxLineBytes + 1) continue;
    if (line > kMaxLineBytes) {
      text += "...";
    } else {
      text += c != '\n' && c != '\t' && (byte < 0x20 || byte == 0x7f) ? '?' : c;
    }
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// The lines that don't say again what the member has told by itself, nor what stands in the message already:
// where the kubelet takes a container's last lines for its last words, both have them.
std::string without_lines_of(const std::string& log, std::string_view told, std::string_view message) {
  constexpr std::size_t kTelling = 8;  // bytes: shorter lines may be anybody's
  std::string rest;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size() - 1) + 1;
    const std::string_view line = std::string_view(log).substr(begin, end - begin);
    const std::string_view words = line.substr(0, line.find_last_not_of("\r\n") + 1);
    const bool again = !told.empty() && line.find(told) != std::string_view::npos;
    const bool stands = words.size() >= kTelling && message.find(words) != std::string_view::npos;
    if (!again && !stands) rest += line;
    begin = end;
  }
  return rest;
}

// A pod's node is asked for its log, and one that is cut off lets everybody wait: not where the cluster says
// that the node does not answer, nor where its pod ran when the member fell silent, which may be the node's
// doing before the cluster knows. A log on this machine is there, whatever became of its process.
bool may_have_log(const plan::Observed& observed, const cluster::Pod& pod) {
  if (!pod.log_path.empty()) return true;
  if (pod.node_not_ready) return false;
  if (pod.ended() || !observed.report || !observed.report->culprit) return true;
  const plan::Culprit& culprit = *observed.report->culprit;
  using enum plan::CulpritKind;
  const bool silent = culprit.kind == kDead || culprit.kind == kFrozen || culprit.kind == kUnreachable;
  return !silent || culprit.exit_code || culprit.signal || culprit.role != pod.spec.role ||
         culprit.index != pod.spec.index;
}

cluster::JobObjects objects_of(const std::string& ns, const std::string& job, const std::string& uid,
                               const std::map<std::string, std::string>& env) {
  const auto token = env.find("PACELINE_TOKEN");
  return {ns, job, uid, token == env.end() ? std::string() : token->second};
}

bool does_not_start(const cluster::Pod& pod) {
  return pod.phase == cluster::PodPhase::kPending && !pod.deleting;
}

// Those of an earlier job of this name may not have ended yet: they are none of this one's.
void keep_pods_of(const std::string& uid, std::vector<cluster::Pod>& pods) {
  std::erase_if(pods, [&](const cluster::Pod& pod) { return pod.spec.job_uid != uid; });
}

bool has_pod(const std::vector<cluster::Pod>& pods, const std::string& name) {
  return std::ranges::any_of(pods, [&](const cluster::Pod& pod) { return pod.spec.name == name; });
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
  using enum plan::ReportPhase;
  const plan::ReportPhase phase = observed.report->phase;
  return (phase == kFinished || phase == kFailed || phase == kStopped) &&
         (awaits_coordinator(observed) || observed.job.status.phase == api::Phase::kSuspended);
}

bool is_creation(const plan::Action& action) {
  return std::holds_alternative<plan::CreatePod>(action);
}

bool is_event(const plan::Action& action) {
  return std::holds_alternative<plan::RecordEvent>(action);
}

// Equal but for what changes with every heartbeat. Who has finished is no progress: another controller must
// know it, whatever becomes of the pod by then.
bool same_but_for_progress(const api::Status& a, const api::Status& b) {
  api::Status rest = a;
  rest.progress = b.progress;
  // What members saved as they left is told once.
  if (b.phase == api::Phase::kRunning) rest.last_checkpoint = b.last_checkpoint;
  if (rest.members.size() != b.members.size()) return false;
  for (std::size_t i = 0; i < rest.members.size(); ++i) {
    if (plan::says_finished(rest.members[i]) != plan::says_finished(b.members[i])) return false;
    rest.members[i].phase = b.members[i].phase;  // pods that come and go are counted, too
    rest.members[i].step = b.members[i].step;
    rest.members[i].compute_fraction = b.members[i].compute_fraction;
    rest.members[i].wait_fraction = b.members[i].wait_fraction;
    rest.members[i].server = b.members[i].server;
    rest.members[i].staleness = b.members[i].staleness;
  }
  return rest == b;
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
      parallel_(options_.create_threads) {
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

std::map<api::Phase, std::int64_t> Reconciler::phases() {
  std::map<api::Phase, std::int64_t> counts;
  auto shared = shared_.lock();
  for (const auto& [key, memory] : shared->jobs) {
    if (memory.phase) ++counts[*memory.phase];
  }
  return counts;
}

void Reconciler::forget(const std::string& key) {
  shared_.lock()->jobs.erase(key);
  reports_.job_over(key);
}

void Reconciler::notify(const std::string& key) {
  queue_.add(key);
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
    if (!key) continue;
    const TimePoint begun = clock_.now();
    const absl::StatusOr<plan::Plan> plan = reconcile_once(*key);
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
      queue_.forget(*key);
      if (plan->requeue_after) queue_.add_after(*key, *plan->requeue_after);
    } else if (gone) {
      forget(*key);
      queue_.forget(*key);
    } else if (left_alone) {
      say_left_alone(*key, std::string(plan.status().message()));
      queue_.forget(*key);
    } else if (hopeless) {
      // The job goes with its namespace, and the store will tell.
      const bool told = std::exchange(shared_.lock()->jobs[*key].namespace_ends, true);
      if (!told)
        log_.info(str_cat("its namespace is being deleted, nothing more is created in it: ",
                          plan.status().message()),
                  {{"job", *key}, {"reason", "NamespaceTerminating"}});
      queue_.forget(*key);
    } else {
      const std::string said = str_cat(plan.status().message(), "; it is tried again");
      if (absl::IsAborted(plan.status())) {  // a user edits the job at this moment: nothing to worry about
        log_.debug(said, {{"job", *key}, {"reason", "Changed"}});
      } else {
        log_.warning(said, {{"job", *key}, {"reason", "ReconcileError"}});
      }
      const Duration asked = retry_after(plan.status()).value_or(Duration::zero());
      queue_.add_rate_limited(*key, std::min(asked, kLongestAsked));
    }
    queue_.done(*key);
  }
}

void Reconciler::say_left_alone(const std::string& key, const std::string& why) {
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
  if (is_another(key, stored.uid)) {
    PL_ASSIGN_OR_RETURN(stored, confirm_job(key, "another job of this name was there"));
  } else if (may_have_members(stored) && may_lag(key, stored.uid)) {
    // Before it has a coordinator, which keeps to what it was made from: who was lost, and who had finished.
    PL_ASSIGN_OR_RETURN(stored, confirm_job(key, "this leader sees it for the first time"));
  } else {
    shared_.lock()->jobs[key].uid = stored.uid;
  }
  absl::Status not_ready;
  std::string version = stored.version;
  PL_ASSIGN_OR_RETURN(plan::Observed observed, observe(key, std::move(stored), not_ready));
  plan::Plan plan = plan::plan(observed);
  if (plan.confirm && plan.confirm->job) {
    PL_ASSIGN_OR_RETURN(stored, confirm_job(key, plan.confirm->why));
    version = stored.version;
    PL_ASSIGN_OR_RETURN(observed, observe(key, std::move(stored), not_ready));
    plan = plan::plan(observed);
  }
  if (plan.confirm) {
    PL_RETURN_IF_ERROR(confirm_pods(key, *plan.confirm, not_ready, observed));
    plan = plan::plan(observed);
  }
  if (!not_ready.ok() || awaits_coordinator(observed)) std::erase_if(plan.actions, is_creation);
  if (!plan::is_terminal(plan.status.phase) && !observed.deleted && !observed.pods.empty() &&
      !observed.job_may_lag) {
    ensure(key, observed);
  }
  if (plan.blamed) tell_last_lines(key, observed, plan);
  if (!plan.absent.empty()) reports_.members_absent(key, plan.absent);
  if (plan.leader_finished) reports_.leader_finished(key);
  absl::Status refused;
  absl::StatusOr<bool> written = false;
  if (plan.stop_members) {
    PL_ASSIGN_OR_RETURN(written, write_status(key, observed, version, plan));
    reports_.stop(key, *plan.stop_members);
  }
  PL_RETURN_IF_ERROR(execute(key, plan, refused));
  if (!plan.stop_members) written = write_status(key, observed, version, plan);
  // Also where the store is out of order: who waits for the end must hear of it.
  if (plan.done) shared_.lock()->jobs[key].final_status = plan.status;
  shared_.lock()->jobs[key].phase = plan.status.phase;
  PL_RETURN_IF_ERROR(written.status());
  if (plan.blamed) shared_.lock()->jobs[key].blamed_log.reset();
  if (*written && brings_last_words(observed)) reports_.last_words_kept(key, observed.report->attempt);
  if (plan.done) reports_.job_over(key);
  if (options_.pending_look > Duration::zero() && std::ranges::any_of(observed.pods, does_not_start)) {
    plan.requeue_after = std::min(plan.requeue_after.value_or(options_.pending_look), options_.pending_look);
  }
  PL_RETURN_IF_ERROR(refused);
  PL_RETURN_IF_ERROR(not_ready);
  return plan;
}

void Reconciler::tell_last_lines(const std::string& key, const plan::Observed& observed, plan::Plan& plan) {
  const cluster::Pod& pod = *plan.blamed;
  if (!may_have_log(observed, pod)) return;
  std::optional<Memory::BlamedLog> log = shared_.lock()->jobs[key].blamed_log;
  if (!log || log->uid != pod.uid || log->ended != pod.ended()) {
    const bool by_verdict = observed.report && observed.report->culprit;
    log = Memory::BlamedLog{
        .uid = pod.uid,
        .ended = pod.ended(),
        .tail = shown(without_lines_of(
            cluster_.tail_log(pod, kBlamedLogLines).value_or(""),
            by_verdict ? std::string_view(observed.report->culprit->evidence) : std::string_view(),
            plan.status.message))};
    shared_.lock()->jobs[key].blamed_log = log;
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
  observed.pods_may_lag = true;
  reports_.pods_seen(key, observed.pods);  // those of the last attempt tell whether its coordinator may go
  not_ready = reports_.job_seen(key, stored);
  // Members that are there already are judged with their coordinator only; a job without any says why.
  if (!not_ready.ok() && any_members(stored.job, observed.pods)) return not_ready;
  reports_.pods_seen(key, observed.pods);
  observed.report = reports_.report(key);
  observed.coordinator_env = reports_.pod_environment(key);
  observed.job = std::move(stored.job);
  observed.job_uid = std::move(stored.uid);
  observed.deleted = stored.deleted;
  observed.generation = stored.generation;
  observed.keeps_checkpoints = stored.keeps_checkpoints;
  observed.now = clock_.wall_now();
  observed.limits = limits_;
  note_sightings(key, observed);
  observed.job_may_lag = may_lag(key, observed.job_uid);
  auto shared = shared_.lock();
  Memory& memory = shared->jobs[key];
  memory.pod_templates = std::move(stored.pod_templates);
  observed.stop = memory.stop;
  observed.create_failure = memory.create_failure;
  if (!not_ready.ok()) {
    observed.create_failure =
        plan::CreateFailure{1, str_cat(observed.job.metadata.name, "-*"), std::string(not_ready.message())};
  }
  return observed;
}

bool Reconciler::may_lag(const std::string& key, const std::string& uid) {
  return shared_.lock()->jobs[key].confirmed_uid != uid;
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
      PL_RETURN_IF_ERROR(perform(key, plan::DeletePod{pod.spec.ns, pod.spec.name, pod.uid,
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

absl::StatusOr<StoredJob> Reconciler::confirm_job(const std::string& key, std::string_view why) {
  log_.debug("asking for the job itself", {{"job", key}, {"reason", std::string(why)}});
  absl::StatusOr<StoredJob> stored = jobs_.get_now(key);
  if (absl::IsNotFound(stored.status()) || absl::IsFailedPrecondition(stored.status()))
    return absl::AbortedError(stored.status().message());
  PL_RETURN_IF_ERROR(stored.status());
  if (is_another(key, stored->uid)) PL_RETURN_IF_ERROR(end_earlier(key, *stored));
  auto shared = shared_.lock();
  Memory& memory = shared->jobs[key];
  memory.uid = memory.confirmed_uid = stored->uid;
  return stored;
}

absl::Status Reconciler::confirm_pods(const std::string& key, const plan::Confirm& confirm,
                                      const absl::Status& not_ready, plan::Observed& observed) {
  const api::Metadata& metadata = observed.job.metadata;
  log_.debug("asking the cluster for the job's pods", {{"job", key}, {"reason", confirm.why}});
  PL_ASSIGN_OR_RETURN(observed.pods, cluster_.list_pods_now(metadata.ns, metadata.name, confirm.pods));
  keep_pods_of(observed.job_uid, observed.pods);
  observed.pods_may_lag = false;
  if (!not_ready.ok() && any_members(observed.job, observed.pods)) return not_ready;
  reports_.pods_seen(key, observed.pods);
  std::vector<std::string> gone = confirm.pods;
  std::erase_if(gone, [&](const std::string& name) { return has_pod(observed.pods, name); });
  if (!gone.empty() && observed.job.status.phase == api::Phase::kRunning) reports_.pods_gone(key, gone);
  observed.report = reports_.report(key);
  observed.now = clock_.wall_now();
  note_sightings(key, observed);
  return absl::OkStatus();
}

void Reconciler::note_sightings(const std::string& key, plan::Observed& observed) {
  auto shared = shared_.lock();
  plan::Sightings& seen = shared->jobs[key].seen;
  observed.seen = std::move(seen);
  if (plan::is_terminal(observed.job.status.phase)) {
    observed.seen.clear();  // nobody asks any more
  } else {
    plan::note_sightings(observed);
  }
  seen = observed.seen;
}

absl::Status Reconciler::execute(const std::string& key, const plan::Plan& plan, absl::Status& refused) {
  absl::Status first_error;
  const bool events_first = plan.stop_members.has_value();  // the status says so already
  for (const bool events : {events_first, !events_first}) {
    if (events && !first_error.ok()) break;
    std::vector<const plan::CreatePod*> creations;  // last: a deletion makes room
    for (const plan::Action& action : plan.actions) {
      if (is_event(action) != events) continue;
      if (const auto* creation = std::get_if<plan::CreatePod>(&action)) {
        creations.push_back(creation);
      } else {
        first_error.Update(perform(key, action));
      }
    }
    if (first_error.ok()) refused.Update(create_all(key, creations));
  }
  return first_error;
}

absl::Status Reconciler::perform(const std::string& key, const plan::Action& action) {
  if (const auto* record = std::get_if<plan::RecordEvent>(&action)) {
    log_.info(record->event.message, {{"job", key}, {"reason", record->event.reason}});
    // An event that is lost is no reason to hold up the job.
    const absl::Status status = cluster_.record_event(record->event);
    if (!status.ok() && !absl::IsCancelled(status)) {
      log_.warning(str_cat("an event is lost: ", status.message()),
                   {{"job", key}, {"reason", record->event.reason}});
    }
    return absl::OkStatus();
  }
  if (const auto* removal = std::get_if<plan::DeleteJob>(&action)) {
    log_.info(str_cat("deleting the job: ", removal->reason), {{"job", key}, {"reason", "TimeToLive"}});
    const absl::Status status = jobs_.remove(key, removal->uid);
    return absl::IsNotFound(status) ? absl::OkStatus() : with_context_and_time(status, "deleting the job");
  }
  const auto& deletion = std::get<plan::DeletePod>(action);
  log_.debug(str_cat("deleting pod ", deletion.name), {{"job", key}, {"reason", deletion.reason}});
  const absl::Status status = cluster_.delete_pod(deletion.ns, deletion.name, deletion.uid, deletion.grace);
  return absl::IsNotFound(status) ? absl::OkStatus()
                                  : with_context_and_time(status, str_cat("deleting pod ", deletion.name));
}

void Reconciler::ensure(const std::string& key, const plan::Observed& observed) {
  const api::Metadata& metadata = observed.job.metadata;
  const absl::Status status =
      cluster_.ensure_job(objects_of(metadata.ns, metadata.name, observed.job_uid, observed.coordinator_env))
          .status();
  if (!status.ok() && !absl::IsCancelled(status)) {
    log_.warning(str_cat(status.message(), "; it is tried again"), {{"job", key}, {"reason", "EnsureError"}});
  }
}

absl::Status Reconciler::create(const std::string& key, const plan::CreatePod& action) {
  log_.debug(str_cat("creating pod ", action.spec.name), {{"job", key}, {"reason", action.reason}});
  cluster::PodSpec spec = action.spec;
  {
    auto shared = shared_.lock();
    const auto& templates = shared->jobs[key].pod_templates;
    if (const auto found = templates.find(spec.role); found != templates.end())
      spec.pod_template = found->second;
  }
  absl::Status status = cluster_.ensure_job(objects_of(spec.ns, spec.job, spec.job_uid, spec.env)).status();
  if (status.ok()) status = cluster_.create_pod(spec).status();
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

absl::Status Reconciler::create_all(const std::string& key,
                                    const std::vector<const plan::CreatePod*>& creations) {
  if (creations.empty()) return absl::OkStatus();
  {
    // What wakes a pass meanwhile (its other pods come up) is no leave to ask again.
    auto shared = shared_.lock();
    const Memory& memory = shared->jobs[key];
    const TimePoint now = clock_.now();
    if (memory.create_again && now < *memory.create_again && memory.create_failure) {
      absl::Status status = absl::UnavailableError(memory.create_failure->error);
      set_retry_after(status, std::chrono::ceil<std::chrono::milliseconds>(*memory.create_again - now));
      return status;
    }
  }
  Guarded<std::map<std::size_t, absl::Status>> failures;  // of those that were asked for at the same time
  slow_start(parallel_, creations.size(), static_cast<std::size_t>(limits_.largest_batch),
             [&](std::size_t i) {
               absl::Status status = create(key, *creations[i]);
               if (status.ok()) return true;
               failures.lock()->emplace(i, std::move(status));
               return false;
             });
  auto failed = failures.lock();
  auto shared = shared_.lock();
  Memory& memory = shared->jobs[key];
  std::optional<plan::CreateFailure>& failure = memory.create_failure;
  memory.create_again.reset();
  if (failed->empty()) {
    failure.reset();
    return absl::OkStatus();
  }
  const auto& [first, status] = *failed->begin();
  if (const auto asked = retry_after(status))
    memory.create_again = clock_.now() + std::min(*asked, kLongestAsked);
  failure = plan::CreateFailure{(failure ? failure->count : 0) + 1, creations[first]->spec.name,
                                std::string(status.message())};
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
