#include "controller/bin/controller.h"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/guarded.h"
#include "base/status.h"
#include "controller/bin/counting_transport.h"
#include "controller/bin/job_metrics.h"
#include "controller/bin/key_gate.h"
#include "controller/certificates/authority_secret.h"
#include "controller/certificates/certificate_keeper.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/curl_transport.h"
#include "controller/cluster/kube/kube_cluster.h"
#include "controller/cluster/kube/kube_job_store.h"
#include "controller/cluster/kube/manifest.h"
#include "controller/lease/kube_lease.h"
#include "controller/lease/leader_elector.h"
#include "controller/plan/kubernetes_limits.h"
#include "controller/queue/work_queue.h"
#include "controller/reconcile/coordinators.h"
#include "controller/reconcile/reconciler.h"
#include "controller/web/controller_metrics.h"
#include "controller/web/http_server.h"

namespace paceline::controller {

namespace {

constexpr Duration kWarmLook = std::chrono::milliseconds(200);  // a stop is seen within this time
constexpr Duration kPendingLook = std::chrono::seconds(4);      // why pods do not start, only events may tell
constexpr int kCreateThreads = 32;
constexpr double kRetriesPerSecond = 50;
// A peer that is gone without a word is noticed, and the lease renewed on another connection, in time.
static_assert(2 * kube::kUnacknowledgedLimit <= lease::kRenewDeadline);
constexpr std::size_t kMostPemBytes = 64 << 10;
constexpr char kCoordinatorName[] = "paceline-coordinator";  // what members take the certificate for

class ControllerImpl final : public Controller {
 public:
  ControllerImpl(ControllerOptions options, kube::Transport& transport, const Clock& clock, Logger log)
      : options_(std::move(options)),
        clock_(clock),
        log_(std::move(log)),
        transport_(transport, metrics_),
        api_(transport_, clock, options_.seed, stop_.get_token()),
        // One that hangs leaves time for another.
        lease_transport_(options_.lease_transport == nullptr ? transport : *options_.lease_transport,
                         metrics_),
        lease_api_(lease_transport_, clock, options_.seed + 4, stop_.get_token(), kube::real_pause,
                   std::chrono::seconds(options_.config.leader_election.renew_deadline_seconds) / 2),
        queue_(clock, {.per_second = kRetriesPerSecond}, &metrics_),
        cluster_(api_, clock, log_,
                 {.ns = options_.config.ns,
                  .image = options_.config.trainer_image,
                  .instance = options_.identity,
                  .node_signs = {options_.config.node_taints, options_.config.ignored_conditions},
                  .seed = options_.seed + 1}),
        jobs_(api_, clock, log_, [this](const std::string& key) { changed_jobs_.publish(key); },
              {.ns = options_.config.ns, .seed = options_.seed + 2}),
        lease_(
            lease_api_,
            options_.config.leader_election.ns.empty() ? options_.own_ns : options_.config.leader_election.ns,
            options_.config.leader_election.name) {}

  ~ControllerImpl() override {
    warmer_ = {};
    elector_.reset();
    starter_ = {};
    stop_.request_stop();
    dashboard_.reset();
    const std::lock_guard lock(leading_mutex_);
    reconciler_.reset();
    coordinators_.reset();
    web_.reset();
  }

  absl::Status listen() {
    if (std::string error = config_error(options_.config); !error.empty()) {
      return absl::InvalidArgumentError(str_cat("leader election: ", error));
    }
    if (needs_authority(options_.config)) PL_RETURN_IF_ERROR(keep_certificate());
    PL_RETURN_IF_ERROR(open_coordinators());
    std::map<std::string, web::HttpServer::PathHandler> handlers;
    handlers["/healthz"] = [] { return web::HttpAnswer{200, "ok\n"}; };
    handlers["/readyz"] = [this] {
      return warm_.load()
                 ? web::HttpAnswer{200, "ok\n"}
                 : web::HttpAnswer{
                       503, "the caches are not warm yet: the API server is not reached, or refuses\n"};
    };
    handlers["/metrics"] = [this] {
      return web::HttpAnswer{200, metrics_text(), "text/plain; version=0.0.4; charset=utf-8"};
    };
    PL_ASSIGN_OR_RETURN(web_,
                        web::HttpServer::start(options_.config.health_address, std::move(handlers), clock_,
                                               options_.config.health_tls ? tls_files() : web::TlsFiles()));
    if (!options_.config.dashboard_address.empty()) {
      const DashboardTls& tls = options_.config.dashboard_tls;
      web::TlsFiles files;
      if (tls.enabled)
        files = tls.key_file.empty() ? tls_files() : tls_files(tls.certificate_file, tls.key_file);
      auto started = ClusterDashboard::start({.address = options_.config.dashboard_address,
                                              .tls = std::move(files),
                                              .ns = options_.config.ns,
                                              .instance = options_.identity,
                                              .transport_of = options_.transport_of,
                                              .seed = options_.seed + 5,
                                              .history = history_options()},
                                             transport_, clock_, log_);
      PL_RETURN_IF_ERROR(with_context(started.status(), "dashboard.address"));
      dashboard_ = *std::move(started);
    }
    warmer_ = std::jthread([this](const std::stop_token& stop) { warm_up(stop); });
    return absl::OkStatus();
  }

  int health_port() const override { return web_->port(); }
  int dashboard_port() const override { return dashboard_ == nullptr ? 0 : dashboard_->port(); }
  bool leads() const override { return leading_.load() && !lost_.load(); }

  absl::Status shut_down() override {
    const absl::Status ended = finish();
    dashboard_.reset();  // writes the history, which the next leader need not wait for
    return ended;
  }

 private:
  absl::Status finish() {
    warmer_ = {};
    bool drained = true;
    std::jthread starter;
    {
      const std::lock_guard lock(leading_mutex_);
      ended_ = true;
      starter.swap(starter_);
    }
    starter = {};
    {
      const std::lock_guard lock(leading_mutex_);
      if (reconciler_) drained = reconciler_->drain(kDrainTimeout);
      if (!drained) return absl::DeadlineExceededError("jobs are still being worked on");
      reconciler_.reset();
      coordinators_.reset();
    }
    leading_.store(false);
    return elector_ ? elector_->release() : absl::OkStatus();
  }

  std::optional<dashboard::HistoryOptions> history_options() {
    const HistorySettings& history = options_.config.history;
    if (history.path.empty()) return std::nullopt;
    return dashboard::HistoryOptions{
        .path = history.path,
        .limits = {.bytes = history.megabytes << 20, .age = std::chrono::hours(24 * history.days)},
        .ns = options_.config.ns,
        .on_error = [this](std::string_view reason) { metrics_.history_error(reason); }};
  }

  // Every replica listens: those that only wait tell members who leads.
  absl::Status open_coordinators() {
    reconcile::CoordinatorsOptions settings;
    settings.server.listen = options_.config.coordinator_listen;
    settings.server.serves = false;
    settings.advertised = options_.config.coordinator_address;
    settings.folder = kube::kWorkFolder;
    settings.log_level = log_level_name(options_.config.member_log_level);
    if (traces::Exporter* const traces = options_.traces; traces != nullptr) {
      settings.on_view_change = [traces](const std::string& key, const std::string& uid,
                                         const api::ViewChange& change) {
        const std::size_t slash = key.find('/');
        traces->add(key.substr(0, slash), key.substr(slash + 1), uid, change);
      };
    }
    PL_RETURN_IF_ERROR(with_context(add_tls(settings), "coordinator.tls"));
    auto started =
        reconcile::Coordinators::start(std::move(settings), cluster_, clock_, log_,
                                       [this](const std::string& key) { changed_jobs_.publish(key); });
    PL_RETURN_IF_ERROR(with_context(started.status(), "coordinator.listen"));
    coordinators_ = *std::move(started);
    return absl::OkStatus();
  }

  // By the controller's own authority: for members, for the Service's name, and by way of a port-forward.
  absl::Status keep_certificate() {
    std::vector<std::string> names{str_cat("DNS:", kCoordinatorName), "DNS:localhost", "IP:127.0.0.1"};
    if (std::string name = certificates::alternative_name_of(options_.config.coordinator_address);
        !name.empty())
      names.push_back(std::move(name));
    PL_ASSIGN_OR_RETURN(certificate_, certificates::CertificateKeeper::start(
                                          [this] {
                                            return certificates::find_or_make_authority(
                                                api_, options_.own_ns, options_.config.tls.secret,
                                                clock_.wall_now());
                                          },
                                          std::move(names), clock_, log_));
    return absl::OkStatus();
  }

  // The certificate of all ports.
  web::TlsFiles tls_files() const {
    if (certificate_ != nullptr)
      return tls_files(certificate_->files().certificate, certificate_->files().key);
    return tls_files(options_.config.tls.certificate_file, options_.config.tls.key_file);
  }
  web::TlsFiles tls_files(const std::string& certificate, const std::string& key) const {
    return {certificate, key, [log = log_](const std::string& why) {
              log.warning(why, {{"reason", "Tls"}});
            }};
  }

  absl::Status add_tls(reconcile::CoordinatorsOptions& settings) {
    const Tls& tls = options_.config.tls;
    if (!tls.enabled) return absl::OkStatus();
    settings.server.certificate_file = tls_files().certificate;
    settings.server.key_file = tls_files().key;
    if (!tls.certificate_file.empty()) {
      PL_RETURN_IF_ERROR(read_file(tls.certificate_file, kMostPemBytes).status());
      PL_RETURN_IF_ERROR(read_file(tls.key_file, kMostPemBytes).status());
      PL_ASSIGN_OR_RETURN(std::string authority, read_file(tls.authority_file, kMostPemBytes));
      settings.authority = [path = tls.authority_file,
                            last = std::make_shared<Guarded<std::string>>(std::move(authority))] {
        auto newest = read_file(path, kMostPemBytes);
        auto known = last->lock();
        if (newest.ok()) *known = *std::move(newest);
        return *known;
      };
      return absl::OkStatus();
    }
    settings.authority = [this] { return certificate_->authority(); };
    return absl::OkStatus();
  }

  // Where members find this replica; empty: it can't be said.
  std::string own_address() {
    if (options_.own_host.empty()) return "";
    const std::string& listens = coordinators_->address();
    const bool v6 = options_.own_host.find(':') != std::string::npos;
    return str_cat(v6 ? "[" : "", options_.own_host, v6 ? "]" : "", listens.substr(listens.rfind(':')));
  }

  void follow(const std::string& who, const std::string& address) {
    log_.info(str_cat("the lease is held by ", who.empty() ? "nobody" : who), {{"reason", "Lease"}});
    const std::lock_guard lock(leading_mutex_);
    if (coordinators_ && who != options_.identity) coordinators_->redirect(address);
  }

  void log_trouble(const std::string& why) {
    log_.warning(str_cat("the lease can't be read or written: ", why, "; it is tried again"),
                 {{"reason", "Lease"}});
  }

  // False: a stop was requested.
  bool wait_synced(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (jobs_.wait_synced(kWarmLook).ok() && cluster_.wait_synced(kWarmLook).ok()) return true;
    }
    return false;
  }

  void warm_up(const std::stop_token& stop) {
    if (!wait_synced(stop)) return;
    while (certificate_ && !certificate_->wait(kWarmLook)) {
      if (stop.stop_requested()) return;
    }
    warm_.store(true);
    log_.info("the caches are warm", {{"reason", "Warm"}});
    const LeaderElection& e = options_.config.leader_election;
    if (!e.enabled) return begin();
    elector_ = std::make_unique<lease::LeaderElector>(
        election_config(e, options_.identity, own_address()), lease_,
        options_.election_clock == nullptr ? clock_ : *options_.election_clock, options_.seed + 3,
        kube::real_pause,
        lease::ElectionCallbacks{
            .on_leading = [this] { list_and_begin(); },
            .on_lost = [this](const std::string& reason) { lose(reason); },
            .on_holder = [this](const std::string& who, const std::string& address) { follow(who, address); },
            .on_trouble = [this](const std::string& why) { log_trouble(why); }});
    elector_->start();
  }

  void lose(const std::string& reason) {
    lost_.store(true);
    if (options_.on_lost) options_.on_lost(reason);
  }

  // From the election's thread, once, which has the lease to renew meanwhile.
  void list_and_begin() {
    const std::lock_guard lock(leading_mutex_);
    if (ended_) return;
    starter_ = std::jthread([this](const std::stop_token& stop) {
      cluster_.list_again();
      jobs_.list_again();
      if (wait_synced(stop)) begin();
    });
  }

  void begin() {
    const std::lock_guard lock(leading_mutex_);
    if (ended_ || lost_.load()) return;
    log_.info("this replica leads", {{"reason", "Leading"}});
    coordinators_->serve();
    reconciler_ = std::make_unique<reconcile::Reconciler>(
        cluster_, jobs_, *coordinators_, clock_, queue_, plan::kubernetes_limits(), log_,
        reconcile::ReconcilerOptions{
            .workers = static_cast<int>(options_.config.workers),
            .create_threads = kCreateThreads,
            .progress_interval = plan::kKubernetesStatusInterval,
            .pending_look = kPendingLook,
            .on_pass = [this](std::string_view result, Duration time) { metrics_.reconciled(result, time); },
            .on_event = [this](std::string_view reason) { metrics_.event(reason); }});
    changed_jobs_.open([this] { return jobs_.keys(); });
    reconciler_->start();
    leading_.store(true);
  }

  std::string metrics_text() {
    metrics_.leading(leads());
    metrics_.queue_depth(queue_.size());
    std::string text = metrics_.text();
    std::optional<Snapshots> jobs;
    {
      // While it begins or ends, its jobs are nobody's to count.
      const std::unique_lock lock(leading_mutex_, std::try_to_lock);
      if (leads() && lock.owns_lock() && reconciler_) jobs = reconciler_->snapshots();
    }
    if (jobs) text += job_metrics(*jobs, options_.config.metrics, clock_.wall_now());
    return text;
  }

  const ControllerOptions options_;
  const Clock& clock_;
  const Logger log_;
  std::stop_source stop_;
  web::ControllerMetrics metrics_;
  CountingTransport transport_;
  kube::ApiClient api_;
  CountingTransport lease_transport_;
  kube::ApiClient lease_api_;
  queue::WorkQueue queue_;
  KeyGate changed_jobs_{[this](const std::string& key) { queue_.add(key); }};
  kube::KubeCluster cluster_;
  kube::KubeJobStore jobs_;
  lease::KubeLease lease_;

  std::unique_ptr<certificates::CertificateKeeper>
      certificate_;  // null: without TLS, or with files of others
  std::atomic<bool> warm_{false}, leading_{false}, lost_{false};
  std::mutex leading_mutex_;  // guards the next four
  bool ended_ = false;
  std::jthread starter_;
  std::unique_ptr<reconcile::Coordinators> coordinators_;
  std::unique_ptr<reconcile::Reconciler> reconciler_;

  std::unique_ptr<web::HttpServer> web_;
  std::unique_ptr<ClusterDashboard> dashboard_;
  std::unique_ptr<lease::LeaderElector> elector_;  // made by the warmer's thread; main's after that has ended
  std::jthread warmer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Controller>> Controller::start(ControllerOptions options,
                                                              kube::Transport& transport, const Clock& clock,
                                                              Logger log) {
  auto controller = std::make_unique<ControllerImpl>(std::move(options), transport, clock, std::move(log));
  PL_RETURN_IF_ERROR(controller->listen());
  return controller;
}

}  // namespace paceline::controller
