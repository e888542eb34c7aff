#include "controller/reconcile/coordinators.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/hex.h"
#include "base/pluralize.h"
#include "base/random.h"
#include "base/status.h"
#include "controller/api/training_spec.h"
#include "controller/diagnosis/diagnosis.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/plan.h"
#include "controller/plan/pods.h"
#include "controller/plan/requests.h"
#include "controller/plan/rules.h"
#include "controller/plan/stragglers.h"
#include "controller/reconcile/report_adapter.h"

namespace paceline::reconcile {

namespace {

constexpr std::size_t kTokenBytes = 32;

// The same for every controller that knows the token: members of one attempt may have been welcomed by
// several.
std::string link_key_of(const std::string& token, const std::string& uid) {
  const std::string text = str_cat("paceline link key ", uid);
  std::string key(EVP_MAX_MD_SIZE, '\0');
  unsigned length = 0;
  const auto* const done = ::HMAC(::EVP_sha256(), token.data(), static_cast<int>(token.size()),
                                  reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                  reinterpret_cast<unsigned char*>(key.data()), &length);
  PL_CHECK(done != nullptr && length == 32, "HMAC-SHA256 gives 32 bytes");
  key.resize(length);
  return key;
}

// Of the present attempt, those that an earlier coordinator saw go: the others do without them, or they had
// finished.
void keep_who_is_gone(const api::TrainingJob& job, coordinator::CoreConfig& core) {
  for (const api::MemberStatus& each : job.status.members) {
    const auto index = static_cast<int>(each.index);
    if (each.pod != plan::pod_name(job, each.role, index, plan::wanted_attempt(job, each.role, index)))
      continue;
    if (each.phase == plan::kLostPhase)
      core.lost.push_back({.fault = {.role = each.role, .index = index, .pod = each.pod}});
    if (core.trained_before && plan::says_finished(each)) core.finished.push_back({each.role, index});
  }
}

// By what rank 0 said last, or others after it. Where no checkpoint is kept, the members alone tell of it
// (plan/rule_status.cc).
Step reached_step(const api::Status& status) {
  Step reached = status.progress.step;
  for (const api::MemberStatus& each : status.members) {
    if (api::trains(each.role)) reached = std::max(reached, each.step);
  }
  return reached;
}

// The pods of the present attempt's members, rank 0's first, and what is to be told of one that is gone.
std::vector<coordinator::PodFact> places_of(const api::TrainingJob& job) {
  std::vector<coordinator::PodFact> places;
  for (const plan::Slot& slot : plan::desired_slots(job)) {
    if (!api::is_member(job, slot.role)) continue;
    const std::int64_t number = plan::wanted_attempt(job, slot.role, slot.index);
    places.push_back({.role = slot.role,
                      .index = slot.index,
                      .pod = plan::pod_name(job, slot.role, slot.index, number),
                      .deleted = true,
                      .incarnation = number});
  }
  return places;
}

std::optional<coordinator::RebalanceRules> rebalance_rules(const api::TrainingJob& job) {
  const api::StragglerPolicy& policy = job.spec.stragglers;
  if (policy.action != api::StragglerPolicyAction::kRebalance) return std::nullopt;
  return coordinator::RebalanceRules{policy.factor, policy.lost_seconds};
}

std::optional<coordinator::PreflightRules> preflight_rules(const api::TrainingJob& job, WallTime now) {
  if (!job.spec.preflight) return std::nullopt;
  coordinator::PreflightRules rules{.factor = job.spec.preflight->factor,
                                    .excludes = job.spec.preflight->action == api::PreflightAction::kExclude,
                                    .most = plan::replacements_left(job, now)};
  for (const Role role : {Role::kChief, Role::kWorker}) {
    if (plan::has_successor(job, role)) rules.replaced.push_back(role);
  }
  return rules;
}

bool ignores_stragglers(const api::TrainingJob& job) {
  return job.spec.stragglers.action == api::StragglerPolicyAction::kIgnore;
}

// What the template gives its pod between SIGTERM and SIGKILL; zero: nothing of its own.
Duration grace_of_rank_zero(const api::TrainingJob& job) {
  const auto& chief = api::replica_spec(job, Role::kChief);
  const auto& first = chief && chief->replicas > 0 ? chief : api::replica_spec(job, Role::kWorker);
  return std::chrono::seconds(first ? first->termination_grace_seconds.value_or(0) : 0);
}

}  // namespace

std::vector<coordinator::ExpectedRole> expected_roles(const api::TrainingJob& job) {
  std::vector<coordinator::ExpectedRole> roles;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    const auto& replica = api::replica_spec(job, role);
    if (!replica || replica->places() == 0) continue;
    roles.push_back(
        {role, static_cast<int>(replica->places()), static_cast<int>(replica->standby.value_or(0))});
  }
  return roles;
}

coordinator::Resize resize_of(const api::TrainingJob& job) {
  return {.roles = expected_roles(job),
          .on_member_lost = coordinator::ring_policy(coordinator::ring_rules(job))};
}

coordinator::PodFact pod_fact(const cluster::Pod& pod) {
  return {.role = pod.spec.role,
          .index = pod.spec.index,
          .pod = pod.spec.name,
          .exit_code = pod.exit_code,
          .signal = pod.signal,
          .words = diagnosis::words_of(pod),
          .incarnation = pod.spec.attempt};
}

absl::StatusOr<coordinator::CoreConfig> core_config(const std::string& key, const StoredJob& job,
                                                    const std::string& token,
                                                    const CoordinatorsOptions& options, WallTime now) {
  coordinator::CoreConfig core;
  const api::RunPaths paths{.base_folder = options.base_folder,
                            .checkpoint_directory = options.folder + "/checkpoints",
                            .model_directory = options.folder + "/model",
                            .resume = job.job.status.restarts.attempt >= options.resumes_from};
  core.listens = !job.job.spec.training;
  if (!core.listens) {
    PL_ASSIGN_OR_RETURN(core.training, api::make_training_spec(job.job, paths));
  }
  if (core.training.encrypts_links() && options.authority == nullptr && !options.same_machine) {
    return absl::FailedPreconditionError(
        "spec.strategy.encryption: TLS: members would be told the key of their links in the clear; turn on "
        "coordinator.tls in the controller's configuration");
  }
  core.job = key;
  core.link_key = link_key_of(token, job.uid);
  core.roles = expected_roles(job.job);
  core.attempt = job.job.status.restarts.attempt;
  for (const api::Replacement& each : job.job.status.restarts.replacements) {
    const auto index = static_cast<int>(each.index);
    if (api::is_member(job.job, each.role))
      core.incarnations.push_back({each.role, index, plan::wanted_attempt(job.job, each.role, index)});
  }
  core.handover = plan::handover_of(job.job);
  core.given_up = plan::given_up(job.job);
  core.rebalance = rebalance_rules(job.job);
  core.save_request = plan::save_request(job.job);
  core.stragglers = job.job.status.stragglers;
  core.preflight = preflight_rules(job.job, now);
  core.elastic = plan::is_elastic(job.job);
  core.min_trainers = plan::min_trainers(job.job);
  core.on_member_lost = coordinator::loss_policy(core.training, coordinator::ring_rules(job.job));
  core.trained_before = job.job.status.phase == api::Phase::kRunning;
  core.built_in = std::ranges::all_of(core.roles, [&](const coordinator::ExpectedRole& each) {
    return !api::trains(each.role) || plan::is_built_in(job.job, each.role);
  });
  core.told_generation = job.job.status.view.generation;
  const api::Progress& progress = job.job.status.progress;
  core.goodput_before = {progress.step, progress.goodput, progress.goodput_seconds};
  if (const Step reached = reached_step(job.job.status); !core.trained_before && reached > 0)
    core.restarts_from = reached;
  keep_who_is_gone(job.job, core);
  core.reattach_limit = options.reattach_limit;
  core.save_timeout = std::max(core.save_timeout, grace_of_rank_zero(job.job));
  core.form_timeout = options.form_timeout;
  core.heartbeat_timeout = options.heartbeat_timeout;
  core.rejoin_grace = options.rejoin_grace;
  core.most_silence = options.most_silence;
  core.same_machine = options.same_machine;
  return core;
}

// One job's coordinator. Its observer calls end with close().
class Coordinators::Entry final : public coordinator::RunObserver {
 public:
  Entry(std::string key, const StoredJob& job, std::string token, const CoordinatorsOptions& options,
        const Logger& log, const Notify& notify)
      : key_(std::move(key)),
        uid_(job.uid),
        token_(std::move(token)),
        attempt_(job.job.status.restarts.attempt),
        places_(places_of(job.job)),
        roles_(expected_roles(job.job)),
        handover_(plan::handover_of(job.job)),
        rebalance_(rebalance_rules(job.job)),
        save_request_(plan::save_request(job.job)),
        ignores_stragglers_(ignores_stragglers(job.job)),
        observer_(options.observer),
        on_view_change_(options.on_view_change),
        log_(log),
        notify_(notify) {}
  ~Entry() override { close(); }

  bool is_of_uid(const std::string& uid) const { return uid_ == uid; }
  bool is_of(const StoredJob& job) const {
    return uid_ == job.uid && attempt_ == job.job.status.restarts.attempt && !is_suspended(job) &&
           coordinator_->report().state != coordinator::JobState::kStopped;
  }
  // Of an earlier attempt whose members were told to stop, and are still at it, or have said something as
  // they left that nobody has kept yet.
  bool still_leaves(const StoredJob& job) const {
    return uid_ == job.uid && attempt_ < job.job.status.restarts.attempt && stopped_.load() &&
           !words_kept_.load() && (pods_live_.load() || has_ended());
  }
  void stop(const plan::StopMembers& stop) {
    stopped_.store(true);
    coordinator_->feed(coordinator::Stop{stop.why, stop.another_follows});
  }
  // Its last words, such as the checkpoint that was made to stop, stand in the job's status.
  bool words_are_kept() const { return words_kept_.load(); }
  void keep_words(std::int64_t attempt) {
    if (attempt == attempt_ && has_ended() && !words_kept_.exchange(true)) look();
  }
  plan::JobReport report() const {
    plan::JobReport report = to_plan(coordinator_->report());
    report.attempt = attempt_;
    return report;
  }
  const std::string& token() const { return token_; }
  void close() {
    if (coordinator_) coordinator_->close();
  }
  void begin(std::shared_ptr<coordinator::Job> coordinator) {
    coordinator_ = std::move(coordinator);
    begun_.store(true);
  }
  void pods_seen(const std::vector<cluster::Pod>& pods) {
    pods_live_.store(std::ranges::any_of(pods, [&](const cluster::Pod& pod) {
      return pod.spec.attempt >= attempt_ && pod.spec.role != Role::kEvaluator && plan::lives(pod);
    }));
    for (const cluster::Pod& pod : pods) {
      const bool mine = pod.spec.attempt >= attempt_ || pod.spec.role == Role::kEvaluator;
      if (!mine || !pod.ended() || !told_pods_.lock()->insert(pod.uid).second) continue;
      coordinator_->feed(pod_fact(pod));
    }
  }
  // Pods that took others' places have other names; and a ring's size may be edited.
  void note_places(const api::TrainingJob& job) {
    *places_.lock() = places_of(job);
    coordinator::Resize resize = resize_of(job);
    if (std::exchange(*roles_.lock(), resize.roles) != resize.roles) coordinator_->feed(std::move(resize));
    ignores_stragglers_.store(ignores_stragglers(job));
    const std::optional<plan::Incarnation> to = plan::handover_of(job);
    if (std::exchange(*handover_.lock(), to) != to) coordinator_->feed(coordinator::Handover{to});
    const std::optional<coordinator::RebalanceRules> rules = rebalance_rules(job);
    if (std::exchange(*rebalance_.lock(), rules) != rules) coordinator_->feed(coordinator::Rebalance{rules});
    const std::string request = plan::save_request(job);
    if (std::exchange(*save_request_.lock(), request) != request)
      coordinator_->feed(coordinator::Save{request});
  }
  void pods_gone(const std::vector<std::string>& names) {
    const std::vector<coordinator::PodFact> places = *places_.lock();
    for (const coordinator::PodFact& place : places) {
      const bool gone = std::ranges::find(names, place.pod) != names.end();
      if (gone && told_gone_.lock()->insert(place.pod).second) coordinator_->feed(place);
    }
  }
  void members_absent(const std::vector<plan::AbsentMember>& absent) {
    for (const plan::AbsentMember& each : absent) {
      if (told_absent_.lock()->insert(each.pod).second) coordinator_->feed(each);
    }
  }
  void leader_finished() {
    coordinator::PodFact end = places_.lock()->front();
    end.exit_code = 0;
    end.deleted = false;
    if (told_gone_.lock()->insert(end.pod).second) coordinator_->feed(end);
  }

  void on_verdict(const api::Fault& verdict) override { warn(verdict, ""); }
  void on_lost(const api::Fault& verdict) override {
    warn(verdict, "; the others go on without it");
    if (observer_ != nullptr) observer_->on_lost(verdict);
  }
  void on_view(const coordinator::ViewRecord& view) override {
    log_.info(
        str_cat("view ", view.generation.value, " of ", pluralize(view.members.size(), "member", "members")),
        {{"job", key_}, {"reason", "View"}});
    look();
    if (observer_ != nullptr) observer_->on_view(view);
  }
  void on_view_change(const api::ViewChange& change) override {
    look();
    if (on_view_change_) on_view_change_(key_, uid_, change);
    if (observer_ != nullptr) observer_->on_view_change(change);
  }
  void on_preflight(const api::Preflight& result) override {
    look();
    if (observer_ != nullptr) observer_->on_preflight(result);
  }
  void on_rebalance(const api::Rebalance& rebalance) override {
    look();
    if (observer_ != nullptr) observer_->on_rebalance(rebalance);
  }
  void on_straggler(const coordinator::StragglerChange& change) override {
    look();
    if (observer_ != nullptr && !ignores_stragglers_.load()) observer_->on_straggler(change);
  }
  void on_steps(std::span<const coordinator::StepRecord> steps) override {
    if (observer_ != nullptr) observer_->on_steps(steps);
  }
  void on_member_steps(const coordinator::MemberSteps& steps) override {
    if (observer_ != nullptr) observer_->on_member_steps(steps);
  }
  void on_evaluation(const coordinator::EvaluationRecord& evaluation) override {
    if (observer_ != nullptr) observer_->on_evaluation(evaluation);
  }
  void on_checkpoint(const coordinator::CheckpointRecord& checkpoint) override {
    if (!save_request_.lock()->empty()) look();
    if (observer_ != nullptr) observer_->on_checkpoint(checkpoint);
  }
  void on_reason(std::string_view reason) override {
    if (observer_ != nullptr) observer_->on_reason(reason);
  }
  void on_batch_end() override {
    if (observer_ != nullptr) observer_->on_batch_end();
  }
  void on_report_changed() override {
    if (!begun_.load()) return;
    const coordinator::Report report = coordinator_->report();
    const auto finished = std::ranges::count_if(report.members, &coordinator::MemberReport::finished);
    const bool other_state = last_state_.exchange(report.state) != report.state;
    const bool other_finished = last_finished_.exchange(finished) != finished;
    const bool other_refused = last_refused_.exchange(report.refused.size()) != report.refused.size();
    if (other_state || other_finished || other_refused)
      look();  // heartbeats alone are no reason to reconcile
  }

 private:
  bool has_ended() const { return plan::is_final(coordinator_->report().state); }
  void warn(const api::Fault& verdict, std::string_view then) {
    log_.warning(str_cat(diagnosis::message_of(verdict), then),
                 {{"job", key_}, {"reason", diagnosis::reason_of(verdict)}, {"host", verdict.host}});
    look();
  }
  void look() {
    if (notify_) notify_(key_);
  }

  const std::string key_, uid_, token_;
  const std::int64_t attempt_;
  Guarded<std::vector<coordinator::PodFact>> places_;
  Guarded<std::vector<coordinator::ExpectedRole>> roles_;
  Guarded<std::optional<plan::Incarnation>> handover_;
  Guarded<std::optional<coordinator::RebalanceRules>> rebalance_;
  Guarded<std::string> save_request_;
  std::atomic<bool> ignores_stragglers_;
  coordinator::RunObserver* const observer_;
  const OnViewChange& on_view_change_;
  const Logger& log_;
  const Notify& notify_;
  std::shared_ptr<coordinator::Job> coordinator_;
  std::atomic<bool> begun_{false}, words_kept_{false}, stopped_{false}, pods_live_{false};
  std::atomic<coordinator::JobState> last_state_{coordinator::JobState::kForming};
  std::atomic<std::ptrdiff_t> last_finished_{0};
  std::atomic<std::size_t> last_refused_{0};
  Guarded<std::set<std::string>> told_pods_;                // by uid
  Guarded<std::set<std::string>> told_gone_, told_absent_;  // by name
};

Coordinators::Coordinators(std::unique_ptr<coordinator::Server> server, CoordinatorsOptions options,
                           cluster::Cluster& cluster, const Clock& clock, Logger log, Notify notify)
    : options_(std::move(options)),
      cluster_(cluster),
      clock_(clock),
      log_(std::move(log)),
      notify_(std::move(notify)),
      server_(std::move(server)) {}

absl::StatusOr<std::unique_ptr<Coordinators>> Coordinators::start(CoordinatorsOptions options,
                                                                  cluster::Cluster& cluster,
                                                                  const Clock& clock, Logger log,
                                                                  Notify notify) {
  PL_ASSIGN_OR_RETURN(auto server, coordinator::Server::start(options.server, clock));
  return with_server(std::move(server), std::move(options), cluster, clock, std::move(log),
                     std::move(notify));
}

std::unique_ptr<Coordinators> Coordinators::with_server(std::unique_ptr<coordinator::Server> server,
                                                        CoordinatorsOptions options,
                                                        cluster::Cluster& cluster, const Clock& clock,
                                                        Logger log, Notify notify) {
  return std::unique_ptr<Coordinators>(new Coordinators(std::move(server), std::move(options), cluster, clock,
                                                        std::move(log), std::move(notify)));
}

Coordinators::~Coordinators() {
  std::map<std::string, std::shared_ptr<Entry>> entries;
  entries.swap(*entries_.lock());
  // The streams break without a word: members wait for the next controller.
  server_->shutdown();
  entries.clear();
}

std::shared_ptr<Coordinators::Entry> Coordinators::find(const std::string& key) {
  auto entries = entries_.lock();
  const auto found = entries->find(key);
  return found == entries->end() ? nullptr : found->second;
}

absl::Status Coordinators::job_seen(const std::string& key, const StoredJob& job) {
  std::shared_ptr<Entry> known = find(key);
  if (known && known->is_of(job)) {
    known->note_places(job.job);
    return absl::OkStatus();
  }
  if (is_suspended(job)) {
    // Those who leave for it still save what they have done.
    if (known && (!known->is_of_uid(job.uid) || known->words_are_kept())) job_over(key);
    return absl::OkStatus();
  }
  if (known && known->still_leaves(job)) return absl::OkStatus();
  if (known) job_over(key);
  known.reset();
  if (!may_have_members(job)) return absl::OkStatus();
  const bool hears = options_.hears_programs || job.job.spec.stragglers.told_by_program;
  if (!job.job.spec.training && !hears) return absl::OkStatus();  // they are nobody's members
  PL_ASSIGN_OR_RETURN(std::shared_ptr<Entry> made, make(key, job));
  (*entries_.lock())[key] = std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Coordinators::Entry>> Coordinators::make(const std::string& key,
                                                                        const StoredJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  PL_ASSIGN_OR_RETURN(const std::string token,
                      cluster_.ensure_job({.ns = metadata.ns,
                                           .job = metadata.name,
                                           .job_uid = job.uid,
                                           .token = hex(random_bytes(kTokenBytes))}));
  coordinator::JobConfig config;
  PL_ASSIGN_OR_RETURN(config.core, core_config(key, job, token, options_, clock_.wall_now()));
  config.token = token;
  auto entry = std::make_shared<Entry>(key, job, token, options_, log_, notify_);
  config.observer = entry.get();
  PL_ASSIGN_OR_RETURN(std::shared_ptr<coordinator::Job> coordinator, server_->add_job(std::move(config)));
  entry->begin(coordinator);
  if (options_.on_attempt) options_.on_attempt(std::move(coordinator));
  return entry;
}

void Coordinators::job_over(const std::string& key) {
  std::shared_ptr<Entry> entry;
  {
    auto entries = entries_.lock();
    const auto found = entries->find(key);
    if (found == entries->end()) return;
    entry = std::move(found->second);
    entries->erase(found);
  }
  entry->close();
}

std::optional<plan::JobReport> Coordinators::report(const std::string& key) {
  const std::shared_ptr<Entry> entry = find(key);
  if (!entry) return std::nullopt;
  return entry->report();
}

void Coordinators::pods_seen(const std::string& key, const std::vector<cluster::Pod>& pods) {
  if (const std::shared_ptr<Entry> entry = find(key)) entry->pods_seen(pods);
}

void Coordinators::pods_gone(const std::string& key, const std::vector<std::string>& names) {
  if (const std::shared_ptr<Entry> entry = find(key)) entry->pods_gone(names);
}

void Coordinators::members_absent(const std::string& key, const std::vector<plan::AbsentMember>& absent) {
  if (const std::shared_ptr<Entry> entry = find(key)) entry->members_absent(absent);
}

void Coordinators::leader_finished(const std::string& key) {
  if (const std::shared_ptr<Entry> entry = find(key)) entry->leader_finished();
}

void Coordinators::last_words_kept(const std::string& key, std::int64_t attempt) {
  if (const std::shared_ptr<Entry> entry = find(key)) entry->keep_words(attempt);
}

void Coordinators::stop(const std::string& key, const plan::StopMembers& stop) {
  if (const std::shared_ptr<Entry> entry = find(key)) entry->stop(stop);
}

std::map<std::string, std::string> Coordinators::pod_environment(const std::string& key) {
  const std::shared_ptr<Entry> entry = find(key);
  if (!entry) return {};
  std::map<std::string, std::string> environment = {
      {"PACELINE_COORDINATOR", options_.advertised.empty() ? server_->address() : options_.advertised},
      {"PACELINE_TOKEN", entry->token()},
      {"PACELINE_LOG_LEVEL", options_.log_level}};
  if (options_.authority) environment["PACELINE_AUTHORITY"] = options_.authority();
  return environment;
}

}  // namespace paceline::reconcile
