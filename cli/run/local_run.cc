#include "cli/run/local_run.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/guarded.h"
#include "base/machine_load.h"
#include "base/process_end.h"
#include "base/processors.h"
#include "base/program.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "controller/cluster/local/local_cluster.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/plan/elastic.h"
#include "controller/plan/plan.h"
#include "controller/queue/work_queue.h"
#include "controller/reconcile/coordinators.h"
#include "controller/reconcile/reconciler.h"

namespace paceline::cli {

namespace {

constexpr Duration kHeartbeatTimeout = std::chrono::seconds(3);  // a pause of two is no loss

absl::StatusOr<std::string> find_program(const std::string& folder, const std::string& name) {
  for (const std::string& candidate : {folder + "/" + name, folder + "/../libexec/paceline/" + name}) {
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(
      str_cat(name, " is neither in ", folder, " nor in ", folder,
              "/../libexec/paceline; build it with scripts/build release, or install Paceline whole"));
}

// A port of 127.0.0.1. The ports behind it are likely to be free, too: the kernel gives them out by chance.
absl::StatusOr<int> free_port() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!socket.valid() || ::bind(socket.get(), any, size) != 0 || ::getsockname(socket.get(), any, &size) != 0)
    return errno_status(errno, "find a free port of 127.0.0.1");
  return ntohs(address.sin_port);
}

class LocalRunImpl final : public LocalRun, public coordinator::RunObserver, public reconcile::JobStore {
 public:
  LocalRunImpl(LocalRunOptions options, const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        key_(api::job_key(options_.job)),
        job_(reconcile::StoredJob{.job = options_.job, .uid = options_.job_uid}) {}

  ~LocalRunImpl() override {
    waiter_ = {};
    reconciler_.reset();
    std::exchange(*attempt_.lock(), {});
    coordinators_.reset();  // from here on no observer call comes
    cluster_.reset();       // kills what is left
  }

  absl::Status start() {
    wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_.valid()) return errno_status(errno, "create an eventfd");
    PL_RETURN_IF_ERROR(start_cluster());
    PL_RETURN_IF_ERROR(start_coordinators());
    return start_loop();
  }

  coordinator::Report report() const override {
    const Attempt attempt = *attempt_.lock();
    if (!attempt.coordinator) return {};
    coordinator::Report report = attempt.coordinator->report();
    report.elapsed += attempt.before;
    if (report.first_step_after) *report.first_step_after += attempt.before;
    return report;
  }
  api::Status status() const override { return job_.lock()->job.status; }
  void edit(const RunEdit& edit) override {
    {
      auto stored = job_.lock();
      api::Spec& spec = stored->job.spec;
      if (edit.suspend) spec.run_policy.suspend = *edit.suspend;
      if (auto& worker = spec.replica_specs.worker; worker && edit.workers) worker->replicas = *edit.workers;
      for (const auto& [annotation, text] : edit.requests)
        stored->job.metadata.annotations[annotation] = text;
    }
    reconciler_->notify(key_);
  }
  std::vector<RunEvent> take_events() override {
    std::uint64_t ignored;
    (void)!::read(wake_.get(), &ignored, sizeof(ignored));
    std::vector<RunEvent> events;
    events.swap(*events_.lock());
    return events;
  }
  int wake_fd() const override { return wake_.get(); }
  void stop() override { reconciler_->stop(key_); }
  void stood_still(Duration duration) override {
    const std::string message =
        str_cat("the process that owns the run stood still for ", format_duration(duration),
                " (ctrl-Z, SIGSTOP, or a machine without time for it), and told of nothing meanwhile");
    const api::Metadata& job = options_.job.metadata;
    (void)cluster_->record_event({job.ns, job.name, true, kOwnerStoodStill, message, options_.job_uid});
  }
  bool ended() const override { return *ended_.lock(); }

 private:
  struct Attempt {
    std::shared_ptr<const coordinator::Job> coordinator;
    Duration before{};  // since the first one began
  };

  absl::Status start_cluster() {
    PL_ASSIGN_OR_RETURN(const std::string pod_program, find_program(options_.program_folder, "paceline-pod"));
    PL_ASSIGN_OR_RETURN(cluster_, cluster::LocalCluster::make(
                                      {.root = options_.run_folder,
                                       .pod_program = pod_program,
                                       .env = {{"PACELINE_VERSION", PACELINE_VERSION}},
                                       .on_event = [this](const cluster::Event& event) { on_event(event); }},
                                      clock_));
    return absl::OkStatus();
  }

  absl::Status start_coordinators() {
    queue_ = std::make_unique<queue::WorkQueue>(clock_);
    // The members run on this machine: nothing but their processes' ends delays what they say.
    const coordinator::CoreConfig here;
    reconcile::CoordinatorsOptions options;
    options.log_level = options_.log_level;
    options.folder = options_.run_folder;
    options.base_folder = options_.base_folder;
    options.same_machine = true;
    options.hears_programs = true;
    options.resumes_from = options_.resumes_from;
    options.heartbeat_timeout = kHeartbeatTimeout;
    options.rejoin_grace = here.rejoin_grace;
    options.most_silence = here.most_silence;
    options.form_timeout = here.form_timeout;
    options.observer = this;
    options.on_view_change = options_.on_view_change;
    options.on_attempt = [this](std::shared_ptr<const coordinator::Job> coordinator) {
      if (!begun_) begun_ = clock_.now();
      Attempt attempt{std::move(coordinator), clock_.now() - *begun_};
      std::swap(*attempt_.lock(), attempt);
    };
    PL_RETURN_IF_ERROR(reconcile::core_config(key_, *job_.lock(), "", options).status());
    PL_ASSIGN_OR_RETURN(coordinators_,
                        reconcile::Coordinators::start(std::move(options), *cluster_, clock_, Logger::none(),
                                                       [this](const std::string& key) { queue_->add(key); }));
    return absl::OkStatus();
  }

  absl::Status start_loop() {
    PL_ASSIGN_OR_RETURN(const std::string worker, find_program(options_.program_folder, "paceline-worker"));
    plan::Limits limits;
    limits.cores = usable_processors();
    const std::uint64_t free_mib = free_memory().value_or(0) >> 20;
    limits.free_mib = static_cast<int>(std::min<std::uint64_t>(free_mib, std::numeric_limits<int>::max()));
    limits.worker_program = {worker};
    limits.base_folder = options_.base_folder;
    if (!options_.job.spec.training) {
      limits.step_teller = {worker, "--steps"};
      PL_ASSIGN_OR_RETURN(limits.first_port, free_port());
    }
    reconciler_ = std::make_unique<reconcile::Reconciler>(*cluster_, *this, *coordinators_, clock_, *queue_,
                                                          std::move(limits), Logger::none());
    reconciler_->start();
    reconciler_->notify(key_);
    waiter_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const auto status = reconciler_->wait(key_, std::chrono::milliseconds(200));
        if (status.status().code() == absl::StatusCode::kDeadlineExceeded) continue;
        *ended_.lock() = true;
        wake();
        return;
      }
    });
    return absl::OkStatus();
  }

  // reconcile::JobStore, of the one job.
  absl::StatusOr<reconcile::StoredJob> get(const std::string& key) override {
    if (key != key_) return absl::NotFoundError(str_cat("job ", key, " does not exist"));
    return *job_.lock();
  }
  absl::Status write_status(const std::string&, const api::Status& status, const std::string&) override {
    using enum api::Phase;
    const api::Status before = std::exchange(job_.lock()->job.status, status);
    const bool again = status.phase == kRestarting && before.restarts.attempt != status.restarts.attempt;
    const bool changed =
        before.phase != status.phase &&
        (status.phase == kRestarting || status.phase == kSuspended || before.phase == kSuspended);
    const bool waits = status.reason == plan::kTooFewMembers;
    const bool rests = status.phase == kSuspended && (before.phase == kSuspended || !has_members(status));
    if ((again || changed || waits || rests) && before.message != status.message)
      note(str_cat(status.message, rests ? options_.resume_text : ""));
    if (status.fault && status.fault != before.fault) note_end(*status.fault);
    for (const api::StragglerReplacement& each : status.straggler_replacements) {
      if (std::ranges::find(before.straggler_replacements, each) == before.straggler_replacements.end())
        tell(each);
    }
    return absl::OkStatus();
  }
  absl::Status remove(const std::string& key, const std::string&) override { return get(key).status(); }

  // coordinator::RunObserver: from the server's threads, one at a time. A batch's events are taken together:
  // whoever saw a step's records and not yet its evaluation would tell a checkpoint of that step too early.
  void on_view(const coordinator::ViewRecord& view) override { batch_.emplace_back(view); }
  void on_view_change(const api::ViewChange& change) override { batch_.emplace_back(change); }
  void on_straggler(const coordinator::StragglerChange& change) override { batch_.emplace_back(change); }
  void on_preflight(const api::Preflight& result) override { batch_.emplace_back(result); }
  void on_rebalance(const api::Rebalance& rebalance) override { batch_.emplace_back(rebalance); }
  void on_steps(std::span<const coordinator::StepRecord> steps) override {
    std::vector<coordinator::StepRecord> records(steps.begin(), steps.end());
    for (coordinator::StepRecord& record : records) record.since_start += attempt_.lock()->before;
    batch_.emplace_back(std::move(records));
  }
  void on_member_steps(const coordinator::MemberSteps& steps) override { batch_.emplace_back(steps); }
  void on_evaluation(const coordinator::EvaluationRecord& evaluation) override {
    coordinator::EvaluationRecord record = evaluation;
    record.since_start += attempt_.lock()->before;
    batch_.emplace_back(std::move(record));
  }
  void on_checkpoint(const coordinator::CheckpointRecord& checkpoint) override {
    batch_.emplace_back(checkpoint);
  }
  void on_lost(const api::Fault& verdict) override {
    if (verdict.kind == api::FaultKind::kUnfit) return;  // on_preflight() has told of it
    if (!verdict.exit_code && !verdict.signal) *awaits_end_.lock() = verdict.pod;
    batch_.emplace_back(RunNote{diagnosis::message_of(verdict)});
  }
  void on_batch_end() override {
    if (batch_.empty()) return;
    {
      auto events = events_.lock();
      for (RunEvent& event : batch_) {
        if (events->size() < (is_of_steps(event) ? kMaxWaitingStepEvents : kMaxWaitingEvents))
          events->push_back(std::move(event));
      }
    }
    batch_.clear();
    wake();
  }

  // The end of a process may be known a moment after the loss of its member, which was told.
  void note_end(const api::Fault& fault) {
    const bool has_end = fault.exit_code || fault.signal;
    if (!has_end || fault.pod.empty() || *awaits_end_.lock() != fault.pod) return;
    awaits_end_.lock()->clear();
    note(str_cat("the process of ", member_name(fault.role, fault.index), " (pod ", fault.pod,
                 ") ended: ", exit_text(fault.exit_code, fault.signal)));
  }

  // From whichever thread acts for the job. All else that is recorded is known by the coordinator's word or
  // by the status.
  void on_event(const cluster::Event& event) {
    if (event.reason == plan::kEvaluatorReplaced || event.reason == plan::kEvaluatorLost ||
        event.reason == kOwnerStoodStill)
      note(event.message);
  }
  void note(const std::string& message) { tell(RunNote{message}); }
  void tell(RunEvent event) {
    {
      auto events = events_.lock();
      if (events->size() < kMaxWaitingEvents) events->push_back(std::move(event));
    }
    wake();
  }

  static bool has_members(const api::Status& status) {
    return std::ranges::any_of(status.replica_statuses, &api::ReplicaStatus::active);
  }
  static bool is_of_steps(const RunEvent& event) {
    return std::holds_alternative<std::vector<coordinator::StepRecord>>(event) ||
           std::holds_alternative<coordinator::MemberSteps>(event);
  }
  void wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof(one));
  }

  const LocalRunOptions options_;
  const Clock& clock_;
  const std::string key_;
  UniqueFd wake_;
  mutable Guarded<reconcile::StoredJob> job_;
  mutable Guarded<Attempt> attempt_;
  std::optional<TimePoint> begun_;  // the loop's thread alone
  std::unique_ptr<queue::WorkQueue> queue_;
  std::unique_ptr<cluster::LocalCluster> cluster_;
  std::unique_ptr<reconcile::Coordinators> coordinators_;
  std::unique_ptr<reconcile::Reconciler> reconciler_;

  std::vector<RunEvent> batch_;  // the observer's calls alone; bounded by what one input brings
  mutable Guarded<std::vector<RunEvent>> events_;
  Guarded<std::string>
      awaits_end_;  // the pod of the member that was lost last, while how it ended is not known
  mutable Guarded<bool> ended_{false};
  std::jthread waiter_;
};

}  // namespace

absl::Status LocalRun::start(LocalRunOptions options, const Clock& clock, std::unique_ptr<LocalRun>& run) {
  auto made = std::make_unique<LocalRunImpl>(std::move(options), clock);
  LocalRunImpl& starting = *made;
  run = std::move(made);
  return without_exceptions([&] { return starting.start(); });
}

}  // namespace paceline::cli
