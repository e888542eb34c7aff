#include "cli/run/local_run.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/guarded.h"
#include "base/hex.h"
#include "base/processors.h"
#include "base/program.h"
#include "base/random.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "controller/api/training_spec.h"
#include "controller/cluster/local/local_cluster.h"
#include "controller/coordinator/server.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/queue/work_queue.h"
#include "controller/reconcile/coordinators.h"
#include "controller/reconcile/reconciler.h"
#include "controller/reconcile/report_adapter.h"

namespace paceline::cli {

namespace {

absl::StatusOr<std::string> find_program(const std::string& folder, const std::string& name) {
  for (const std::string& candidate : {folder + "/" + name, folder + "/../libexec/paceline/" + name}) {
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(
      str_cat(name, " is neither in ", folder, " nor in ", folder,
              "/../libexec/paceline; build it with scripts/build release, or install Paceline whole"));
}

class LocalRunImpl final : public LocalRun, public coordinator::RunObserver, public reconcile::ReportSource {
 public:
  LocalRunImpl(LocalRunOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock), key_(api::job_key(options_.job)) {}

  ~LocalRunImpl() override {
    waiter_ = {};
    if (handle_) handle_->close();  // from here on no observer call comes
    reconciler_.reset();
    cluster_.reset();  // kills what is left
    handle_.reset();
    if (server_) server_->shutdown();
  }

  absl::Status start() {
    wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_.valid()) return errno_status(errno, "create an eventfd");
    PL_RETURN_IF_ERROR(start_coordinator());
    PL_RETURN_IF_ERROR(start_cluster());
    PL_RETURN_IF_ERROR(start_loop());
    return absl::OkStatus();
  }

  coordinator::Report report() const override { return handle_->report(); }
  api::Status status() const override {
    auto stored = jobs_.get(key_);
    return stored.ok() ? stored->job.status : options_.job.status;
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
  bool ended() const override { return *ended_.lock(); }

 private:
  absl::Status start_coordinator() {
    api::RunPaths paths{.base_folder = options_.base_folder,
                        .checkpoint_directory = options_.run_folder + "/checkpoints",
                        .model_directory = options_.run_folder + "/model",
                        .resume = options_.resume};
    coordinator::JobConfig config;
    PL_ASSIGN_OR_RETURN(config.core.training, api::make_training_spec(options_.job, paths));
    config.core.link_key = random_bytes(32);
    token_ = hex(random_bytes(16));
    config.core.job = key_;
    config.core.roles = reconcile::expected_roles(options_.job);
    config.core.on_member_lost = coordinator::loss_policy(config.core.training);
    config.token = token_;
    config.observer = this;
    PL_ASSIGN_OR_RETURN(server_, coordinator::Server::start({}, clock_));
    PL_ASSIGN_OR_RETURN(handle_, server_->add_job(std::move(config)));
    return absl::OkStatus();
  }

  absl::Status start_cluster() {
    PL_ASSIGN_OR_RETURN(const std::string pod_program, find_program(options_.program_folder, "paceline-pod"));
    PL_ASSIGN_OR_RETURN(cluster_, cluster::LocalCluster::make(
                                      {.root = options_.run_folder,
                                       .pod_program = pod_program,
                                       .env = {},
                                       .on_event = [this](const cluster::Event& event) { hear(event); }},
                                      clock_));
    return absl::OkStatus();
  }

  absl::Status start_loop() {
    PL_ASSIGN_OR_RETURN(const std::string worker, find_program(options_.program_folder, "paceline-worker"));
    plan::Limits limits;
    limits.cores = usable_processors();
    limits.worker_program = {worker};
    limits.base_folder = options_.base_folder;
    PL_RETURN_IF_ERROR(jobs_.add({.job = options_.job, .uid = options_.job_uid}));
    queue_ = std::make_unique<queue::WorkQueue>(clock_);
    reconciler_ = std::make_unique<reconcile::Reconciler>(*cluster_, jobs_, *this, clock_, *queue_,
                                                          std::move(limits), Logger::none());
    reconciler_->start();
    wired_.store(true);
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

  // coordinator::RunObserver: from the server's threads, one at a time. A batch's events are taken together:
  // whoever saw a step's records and not yet its evaluation would tell a checkpoint of that step too early.
  void on_view(const coordinator::ViewRecord& view) override { push(view); }
  void on_steps(std::span<const coordinator::StepRecord> steps) override {
    push(std::vector<coordinator::StepRecord>(steps.begin(), steps.end()));
  }
  void on_member_steps(const coordinator::MemberSteps& steps) override { push(steps); }
  void on_evaluation(const coordinator::EvaluationRecord& evaluation) override { push(evaluation); }
  void on_checkpoint(const coordinator::CheckpointRecord& checkpoint) override { push(checkpoint); }
  void on_verdict(const api::Fault&) override { look(); }
  void on_lost(const api::Fault& verdict) override {
    push(LostMember{diagnosis::message_of(verdict)});
    look();
  }
  void on_report_changed() override {
    if (!wired_.load()) return;
    const coordinator::JobState state = handle_->report().state;
    bool changed;
    {
      auto last = last_state_.lock();
      changed = *last != state;
      *last = state;
    }
    if (changed) look();  // heartbeats alone are no reason to reconcile
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

  // reconcile::ReportSource: from the loop's thread.
  std::optional<plan::JobReport> report(const std::string& key) override {
    if (key != key_) return std::nullopt;
    return reconcile::to_plan(handle_->report());
  }
  void pods_seen(const std::string&, const std::vector<cluster::Pod>& pods) override {
    for (const cluster::Pod& pod : pods) {
      if (pod.ended() && told_pods_.insert(pod.uid).second) handle_->pod_ended(reconcile::pod_fact(pod));
    }
  }
  void stop(const std::string&, const plan::StopMembers& stop) override {
    handle_->stop({stop.why, stop.another_follows});
  }
  std::map<std::string, std::string> pod_environment(const std::string&) override {
    return {{"PACELINE_COORDINATOR", server_->address()},
            {"PACELINE_TOKEN", token_},
            {"PACELINE_LOG_LEVEL", options_.log_level},
            {"PACELINE_VERSION", PACELINE_VERSION}};
  }

  // From whichever thread acts for the job. All else that is recorded is known by the coordinator's word or
  // by the status.
  void hear(const cluster::Event& event) {
    if (event.reason != plan::kEvaluatorReplaced && event.reason != plan::kEvaluatorLost) return;
    {
      auto events = events_.lock();
      if (events->size() >= kMaxWaitingEvents) return;
      events->push_back(LostEvaluator{event.message});
    }
    wake();
  }

  void look() {
    if (wired_.load()) reconciler_->notify(key_);
  }
  static bool is_of_steps(const RunEvent& event) {
    return std::holds_alternative<std::vector<coordinator::StepRecord>>(event) ||
           std::holds_alternative<coordinator::MemberSteps>(event);
  }
  void push(RunEvent event) { batch_.push_back(std::move(event)); }
  void wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof(one));
  }

  const LocalRunOptions options_;
  const Clock& clock_;
  const std::string key_;
  std::string token_;
  UniqueFd wake_;
  mutable reconcile::MemoryJobStore jobs_;
  std::unique_ptr<coordinator::Server> server_;
  std::unique_ptr<coordinator::JobHandle> handle_;
  std::unique_ptr<cluster::LocalCluster> cluster_;
  std::unique_ptr<queue::WorkQueue> queue_;
  std::unique_ptr<reconcile::Reconciler> reconciler_;
  std::atomic<bool> wired_{
      false};  // all of the above is there; observer calls that come earlier have nothing to wake

  // The loop's thread alone.
  std::set<std::string> told_pods_;  // by uid; bounded by the job's pods

  std::vector<RunEvent> batch_;  // the observer's calls alone; bounded by what one input brings
  mutable Guarded<std::vector<RunEvent>> events_;
  mutable Guarded<bool> ended_{false};
  Guarded<coordinator::JobState> last_state_{coordinator::JobState::kForming};
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
