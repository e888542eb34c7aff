#include "tests/simulation/controller_process.h"

#include <algorithm>
#include <utility>

#include "controller/plan/kubernetes_limits.h"
#include "tests/simulation/attachment.h"

namespace paceline::simulation {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {
constexpr Duration kTick = milliseconds(50);
constexpr Duration kPendingLook = seconds(4);
constexpr std::size_t kPodKind = static_cast<std::size_t>(ApiServer::Kind::kPod);
constexpr std::size_t kJobKind = static_cast<std::size_t>(ApiServer::Kind::kJob);

std::string job_key_of(const ApiServer::Change& change) {
  return change.pod ? str_cat(change.pod->spec.ns, "/", change.pod->spec.job) : change.key;
}
}  // namespace

// ---- streams, in place of gRPC's server

class ControllerProcess::Server final : public coordinator::Server {
 public:
  Server(const Clock& clock, std::string address) : clock_(clock), address_(std::move(address)) {}

  const std::string& address() const override { return address_; }
  absl::StatusOr<std::shared_ptr<coordinator::Job>> add_job(coordinator::JobConfig config) override {
    if (absl::Status valid = validate(config.core); !valid.ok()) return valid;
    auto job = std::make_shared<coordinator::Job>(std::move(config), clock_,
                                                  [this](const coordinator::Job& gone) { remove(gone); });
    for (const auto& each : jobs_) {
      if (each->token() == job->token()) return absl::AlreadyExistsError(job->name());
    }
    jobs_.push_back(job);
    return std::shared_ptr<coordinator::Job>(job.get(), [job](coordinator::Job*) { job->close(); });
  }
  void serve() override { leader_.reset(); }
  void redirect(std::string leader) override { leader_ = std::move(leader); }
  void shutdown() override {
    down_ = true;
    for (const auto& weak : links_) {
      if (const auto link = weak.lock()) link->finish(absl::UnavailableError("the coordinator shuts down"));
    }
  }
  void tick() {
    const std::vector<std::shared_ptr<coordinator::Job>> jobs = jobs_;
    for (const auto& job : jobs) {
      if (job->due() <= clock_.now()) job->feed(coordinator::Tick{});
    }
  }
  void attach(const std::shared_ptr<Link>& link, const std::string& token) {
    if (down_) return link->finish(absl::UnavailableError("the coordinator shuts down"));
    if (leader_) return link->finish_to(absl::UnavailableError("this replica does not lead"), *leader_);
    const auto found = std::ranges::find(jobs_, token, [](const auto& job) { return job->token(); });
    if (found == jobs_.end()) return link->finish(absl::UnavailableError("no job here has this token"));
    links_.push_back(link);
    const coordinator::StreamId stream{++streams_};
    const std::weak_ptr<Link> weak = link;
    link->on_received = [job = *found, stream, weak, greeted = false](v1::MemberMessage message) mutable {
      if (std::exchange(greeted, true)) return job->feed(coordinator::Received{stream, std::move(message)});
      if (const auto outlet = weak.lock()) job->attach(stream, outlet, message.hello());
    };
    link->on_closed = [job = *found, stream, weak](const std::string& why) {
      job->feed(coordinator::StreamEnded{stream, why});
      if (const auto outlet = weak.lock()) outlet->finish(absl::OkStatus());
    };
  }
  void lose_links() {
    for (const auto& weak : links_) {
      if (const auto link = weak.lock()) link->lose_server();
    }
  }

 private:
  void remove(const coordinator::Job& gone) {
    std::erase_if(jobs_, [&](const auto& each) { return each.get() == &gone; });
  }
  const Clock& clock_;
  const std::string address_;
  std::vector<std::shared_ptr<coordinator::Job>> jobs_;
  std::vector<std::weak_ptr<Link>> links_;
  std::optional<std::string> leader_ = "";
  std::uint64_t streams_ = 0;
  bool down_ = false;
};

void ControllerProcess::Narrator::on_reason(std::string_view reason) {
  owner_.world_.trace.add(owner_.name_, " finds: ", reason);
}

// ---- the API server, as this process sees it

void ControllerProcess::wait(Duration most) {
  const TimePoint until = world_.events.now() + world_.dice.between(Duration::zero(), most);
  while (process_.alive() && !world_.over() && world_.events.run_next(until)) {
  }
  while (process_.alive() && process_.paused() && !world_.over()) {
    if (!world_.events.run_next(world_.events.now() + seconds(1))) continue;
  }
}

// A process that has ended calls nobody: what its pass does from here has no effect.
template <typename Answer>
Answer ControllerProcess::call(const char* what, const std::function<Answer()>& work) {
  const absl::Status gone = absl::UnavailableError(str_cat(what, ": this process has ended"));
  if (!alive()) return gone;
  const bool ends = crash_in_ && --*crash_in_ <= 0;
  const bool before = ends && world_.dice.chance(0.5);
  if (before) crash();
  if (alive())
    wait(trouble_.slow > Duration::zero() ? trouble_.slow : milliseconds(world_.dice.chance(0.3) ? 30 : 3));
  if (!alive()) return gone;
  if (world_.dice.chance(trouble_.fails))
    return absl::UnavailableError(str_cat(what, ": the API server is away"));
  Answer answer = work();
  if (ends) crash();
  if (alive()) wait(milliseconds(3));
  if (!alive()) return gone;
  if (world_.dice.chance(trouble_.loses_answer))
    return absl::DeadlineExceededError(str_cat(what, ": no answer"));
  return answer;
}

class ControllerProcess::SeenCluster final : public cluster::Cluster {
 public:
  explicit SeenCluster(ControllerProcess& owner) : owner_(owner) {}
  absl::StatusOr<cluster::Pod> create_pod(const cluster::PodSpec& spec) override {
    using Answer = absl::StatusOr<cluster::Pod>;
    return owner_.call<Answer>("creating a pod", [&]() -> Answer {
      ApiServer& api = owner_.world_.api;
      const auto made = api.create_pod(spec);
      if (absl::IsAlreadyExists(made.status())) {
        const cluster::Pod* const there = api.pod(str_cat(spec.ns, "/", spec.name));
        if (there->spec.job_uid != spec.job_uid)
          return absl::UnavailableError("a pod of an earlier job of this name");
      }
      if (!made.ok()) return made.status();
      owner_.world_.trace.add(owner_.name_, " creates ", spec.name);
      owner_.pods_.offer(*made);
      return *api.change(*made).pod;
    });
  }
  absl::Status delete_pod(const std::string& ns, const std::string& name, const std::string& uid,
                          Duration grace) override {
    return owner_.call<absl::Status>("deleting a pod", [&]() -> absl::Status {
      const auto gone =
          owner_.world_.api.delete_pod(str_cat(ns, "/", name), uid, std::max(grace, Duration(seconds(1))));
      if (!gone.ok()) return gone.status();
      owner_.world_.trace.add(owner_.name_, " deletes ", name);
      if (*gone) owner_.pods_.offer(**gone);
      return absl::OkStatus();
    });
  }
  absl::StatusOr<std::vector<cluster::Pod>> list_pods(const std::string& ns,
                                                      const std::string& job) override {
    if (!owner_.synced_) return absl::UnavailableError("the list of pods has not come yet");
    std::vector<cluster::Pod> pods;
    for (const auto& each : owner_.pods_.of_job(str_cat(ns, "/", job))) pods.push_back(*each->value);
    return pods;
  }
  absl::StatusOr<std::string> ensure_job(const cluster::JobObjects& job) override {
    return str_cat("the token of the job ", job.job_uid);
  }
  absl::Status record_event(const cluster::Event& event) override {
    if (!owner_.alive()) return absl::UnavailableError("this process has ended");
    owner_.world_.trace.add(owner_.name_, " tells ", event.reason, ": ", event.message.substr(0, 200));
    return absl::OkStatus();
  }
  void watch(OnChange) override {}
  absl::StatusOr<std::string> tail_log(const cluster::Pod&, int) override { return std::string(); }

 private:
  ControllerProcess& owner_;
};

class ControllerProcess::SeenJobs final : public reconcile::JobStore {
 public:
  explicit SeenJobs(ControllerProcess& owner) : owner_(owner) {}
  absl::StatusOr<reconcile::StoredJob> get(const std::string& key) override {
    if (!owner_.synced_) return absl::UnavailableError("the list of jobs has not come yet");
    const auto job = owner_.jobs_.find(key);
    if (job == nullptr) return absl::NotFoundError(key);
    return *job->value;
  }
  absl::Status write_status(const std::string& key, const api::Status& status,
                            const std::string& version) override {
    const auto job = owner_.jobs_.find(key);
    if (job == nullptr) return absl::NotFoundError(key);
    if (job->value->job.status == status) return absl::OkStatus();
    return owner_.call<absl::Status>("writing a status", [&]() -> absl::Status {
      const auto written = owner_.world_.api.write_status(key, job->value->uid, status, version);
      if (written.ok()) owner_.jobs_.offer(*written);
      return written.status();
    });
  }
  absl::Status remove(const std::string& key, const std::string& uid) override {
    return owner_.call<absl::Status>("deleting a job",
                                     [&] { return owner_.world_.api.delete_job(key, uid); });
  }

 private:
  ControllerProcess& owner_;
};

void ControllerProcess::publish(const kube::ObjectSink::Keys& keys) {
  for (const std::string& key : keys) {
    if (reconciler_ != nullptr) queue_.add(key);
  }
}

void ControllerProcess::apply(std::size_t number) {
  kube::ObjectSink::Keys keys;
  const ApiServer::Change& change = world_.api.change(number);
  kube::ObjectSink& store = change.pod ? static_cast<kube::ObjectSink&>(pods_) : jobs_;
  if (change.removed) {
    store.remove(number, keys);
  } else {
    store.put(number, round_, keys);
  }
  publish(keys);
}

void ControllerProcess::on_change(std::size_t number) {
  if (!alive() || !synced_) return;
  Watch& watch = watches_[static_cast<std::size_t>(world_.api.change(number).kind)];
  const Duration lag = world_.dice.between(milliseconds(1), trouble_.lag + milliseconds(30));
  watch.last = std::max(watch.last, world_.events.now() + lag);
  process_.after(watch.last - world_.events.now(), [this, number, &watch, epoch = watch.epoch] {
    if (epoch != watch.epoch) return;
    apply(number);
  });
}

void ControllerProcess::list(ApiServer::Kind kind, std::size_t count) {
  Watch& watch = watches_[static_cast<std::size_t>(kind)];
  ++watch.epoch;
  kube::ObjectSink::Keys keys;
  kube::ObjectSink& store = kind == ApiServer::Kind::kPod ? static_cast<kube::ObjectSink&>(pods_) : jobs_;
  const std::string version = count == 0 ? "0" : str_cat(world_.api.change(count - 1).version);
  store.begin(++round_, version);
  for (const std::size_t number : world_.api.objects(kind, count)) store.put(number, round_, keys);
  store.sweep(round_, version, keys);
  publish(keys);
  for (std::size_t later = count; later < world_.api.changes(); ++later) {
    if (world_.api.change(later).kind == kind) on_change(later);
  }
}

void ControllerProcess::list_again() {
  if (!alive() || !synced_) return;
  world_.trace.add(name_, " lists again");
  for (const auto kind : {ApiServer::Kind::kJob, ApiServer::Kind::kPod}) list(kind, world_.api.changes());
}

// ---- its life

ControllerProcess::ControllerProcess(World world, int number)
    : world_(std::move(world)),
      name_(str_cat("controller-", number)),
      host_(kControllers + number),
      process_(world_.events),
      clock_(world_.events),
      election_({.identity = name_, .address = name_}),
      pods_([this](const kube::Json& number) -> std::optional<Cached<cluster::Pod>> {
        const ApiServer::Change& change = world_.api.change(number.get<std::size_t>());
        return Cached<cluster::Pod>{change.key, job_key_of(change), str_cat(change.version), change.pod};
      }),
      jobs_([this](const kube::Json& number) -> std::optional<Cached<reconcile::StoredJob>> {
        const ApiServer::Change& change = world_.api.change(number.get<std::size_t>());
        return Cached<reconcile::StoredJob>{change.key, change.key, str_cat(change.version), change.job};
      }),
      cluster_(std::make_unique<SeenCluster>(*this)),
      seen_jobs_(std::make_unique<SeenJobs>(*this)),
      queue_(clock_, {.per_second = 50}) {
  static_assert(kPodKind < 2 && kJobKind < 2);
}

ControllerProcess::~ControllerProcess() {
  process_.kill();
  reconciler_.reset();
  coordinators_.reset();
}

void ControllerProcess::start() {
  reconcile::CoordinatorsOptions settings;
  settings.observer = &narrator_;
  settings.advertised = "coordinator:7070";
  auto server = std::make_unique<Server>(clock_, name_);
  server_ = server.get();
  coordinators_ =
      reconcile::Coordinators::with_server(std::move(server), std::move(settings), *cluster_, clock_,
                                           Logger::none(), [this](const std::string& key) {
                                             if (reconciler_ != nullptr && alive()) queue_.add(key);
                                           });
  process_.after(world_.dice.between(milliseconds(20), milliseconds(800)), [this] {
    synced_ = true;
    for (const auto kind : {ApiServer::Kind::kJob, ApiServer::Kind::kPod}) list(kind, world_.api.changes());
    elect();
  });
  tick();
  world_.api.watch([this](std::size_t number) { on_change(number); });
}

void ControllerProcess::elect() {
  const double random = static_cast<double>(world_.dice.between(0, 999)) / 1000;
  const lease::ElectionCore::Action action = election_.next(clock_.now(), clock_.wall_now(), random);
  if (const auto* lost = std::get_if<lease::ElectionCore::Lost>(&action)) return lose(lost->reason);
  if (const auto* pause = std::get_if<lease::ElectionCore::Wait>(&action))
    return process_.after(pause->time, [this] { elect(); });
  const auto write = std::get_if<lease::ElectionCore::Write>(&action);
  const bool fails = world_.dice.chance(trouble_.fails);
  const Duration there = world_.dice.between(milliseconds(1), milliseconds(5));
  if (fails) {
    return process_.after(
        there, [this] { after_lease(absl::UnavailableError("the API server is away"), {}, false); });
  }
  const std::optional<lease::ElectionCore::Write> written =
      write == nullptr ? std::nullopt : std::optional(*write);
  process_.after(there, [this, written] {
    absl::Status status;
    std::optional<lease::Seen> seen;
    if (written) {
      auto answer = world_.api.write_lease(*written);
      status = answer.status();
      if (answer.ok()) seen = *answer;
    } else {
      seen = world_.api.lease();
    }
    process_.after(milliseconds(1),
                   [this, status, seen, wrote = written.has_value()] { after_lease(status, seen, wrote); });
  });
}

void ControllerProcess::after_lease(const absl::Status& status, std::optional<lease::Seen> seen, bool wrote) {
  if (!status.ok()) {
    if (absl::IsAborted(status)) {
      election_.on_conflict();
    } else {
      election_.on_error(std::string(status.message()));
    }
  } else if (wrote) {
    election_.on_written(*seen, clock_.now());
  } else {
    election_.on_read(std::move(seen), clock_.now());
  }
  const bool leads = election_.leads(clock_.now());
  if (!leads && status.ok()) coordinators_->redirect(election_.holder_address());
  if (leads && !std::exchange(told_leading_, true)) {
    process_.after(world_.dice.between(milliseconds(5), milliseconds(200)), [this] { lead(); });
  }
  elect();
}

void ControllerProcess::lead() {
  for (const auto kind : {ApiServer::Kind::kJob, ApiServer::Kind::kPod}) list(kind, world_.api.changes());
  world_.trace.add(name_, " leads");
  coordinators_->serve();
  reconciler_ = std::make_unique<reconcile::Reconciler>(
      *cluster_, *seen_jobs_, *coordinators_, clock_, queue_, plan::kubernetes_limits(), Logger::none(),
      reconcile::ReconcilerOptions{.progress_interval = plan::kKubernetesStatusInterval,
                                   .pending_look = kPendingLook});
  publish(jobs_.job_keys());
}

void ControllerProcess::lose(const std::string& why) {
  world_.trace.add(name_, " does not lead any more: ", why);
  crash();
}

void ControllerProcess::tick() {
  const auto until = election_.leads_until();
  if (told_leading_ && until && clock_.now() >= *until) return lose("the lease was not renewed in time");
  server_->tick();
  if (reconciler_ != nullptr && !working_) {
    working_ = true;
    while (const auto key = alive() ? queue_.get(Duration::zero()) : std::nullopt) reconciler_->work_on(*key);
    working_ = false;
  }
  process_.after(kTick, [this] { tick(); });
}

void ControllerProcess::attach(const std::shared_ptr<Link>& link, const member::Environment& environment) {
  if (alive()) return server_->attach(link, environment.token);
  link->lose_server();
}

std::string ControllerProcess::describe(const std::string& key) {
  const auto report = alive() ? coordinators_->report(key) : std::nullopt;
  if (!report) return str_cat(name_, ": no coordinator");
  std::string text =
      str_cat(name_, ": attempt ", report->attempt, " is ", plan::job_state_name(report->state), ", view ",
              report->generation.value, ": ", report->reason);
  for (const plan::ReportedMember& each : report->members) {
    text += str_cat("; ", each.pod, " rank ", each.rank, " ", each.phase, " step ", each.step,
                    each.finished ? " finished" : "");
  }
  for (const plan::LostMember& each : report->lost)
    text += str_cat("; lost: ", member_name(each.fault.role, each.fault.index));
  return text;
}

void ControllerProcess::crash() {
  if (!alive()) return;
  world_.trace.add(name_, working_ ? " ends in the middle of a pass" : " ends");
  process_.kill();
  server_->lose_links();
}

}  // namespace paceline::simulation
