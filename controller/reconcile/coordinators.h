#pragma once

// The coordinators of all jobs that this controller runs, in one gRPC server: what the reconciler asks of
// them (report_source.h), and who it wakes when one has news.
//
// A job's token is the one that the cluster keeps for it (Cluster::ensure_job), and the key of its data links
// follows from that: so members that a controller before this one has started are known again.
//
// Thread-safe. `notify` comes from the server's threads, without locks. Bounds: one coordinator per job that
// was seen and is not over; streams and messages as coordinator/server.h says.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "controller/cluster/cluster.h"
#include "controller/coordinator/server.h"
#include "controller/reconcile/report_source.h"

namespace paceline::reconcile {

// Who may attach to a job's coordinator.
std::vector<coordinator::ExpectedRole> expected_roles(const api::TrainingJob& job);
// The coordinator of a ring is told this when the job's size is edited.
coordinator::Resize resize_of(const api::TrainingJob& job);
// What the cluster says about a pod that ended.
coordinator::PodFact pod_fact(const cluster::Pod& pod);

// The first step of a view was applied that another one was before. From the server's threads, without locks.
using OnViewChange =
    std::function<void(const std::string& key, const std::string& uid, const api::ViewChange& change)>;

struct CoordinatorsOptions {
  coordinator::ServerOptions server;
  std::string advertised;  // PACELINE_COORDINATOR of the pods; empty: the server's own address
  // The authority of the server's certificate, in PEM, for members; null: the server is without TLS.
  std::function<std::string()> authority = nullptr;
  std::string log_level = "info";    // of members
  std::string folder = "/paceline";  // where pods run: models and checkpoints go here
  std::string base_folder;           // relative paths of a job are relative to it; empty: they stay so
  bool same_machine = false;         // members' process ids mean something to people
  bool hears_programs = false;  // of all jobs without training, whether spec.stragglers asks for it or not
  // The first attempt that goes on from checkpoints; an earlier one refuses to train where some are.
  std::int64_t resumes_from = 0;
  // Hears of every job's attempts, as the coordinators themselves do; null: there is none. Outlives them.
  coordinator::RunObserver* observer = nullptr;
  // A job has another coordinator. Its report may be asked for, until the coordinators end.
  std::function<void(std::shared_ptr<const coordinator::Job>)> on_attempt = nullptr;
  OnViewChange on_view_change = nullptr;
  Duration reattach_limit = std::chrono::minutes(10);  // members outlive a controller that is replaced
  // A network lies between: what passes within seconds is no reason to restart all members. One whose process
  // has ended is known by its pod and by its peers.
  Duration heartbeat_timeout = std::chrono::seconds(5), rejoin_grace = std::chrono::seconds(5);
  // Where all members of a job are late, or while a view is formed: a node that is short of processors is no
  // reason to restart them, which would only load it more.
  Duration most_silence = std::chrono::seconds(30);
  // Pods may wait long for room or for an image: who is missing is for the planner to say, which sees pods.
  Duration form_timeout = std::chrono::hours(24 * 365);
};

// The configuration of the coordinator of a job's present attempt, if it begins now. Errors as
// api::make_training_spec(); FAILED_PRECONDITION: links are to be encrypted, and members attach without TLS.
absl::StatusOr<coordinator::CoreConfig> core_config(const std::string& key, const StoredJob& job,
                                                    const std::string& token,
                                                    const CoordinatorsOptions& options, WallTime now = {});

class Coordinators final : public ReportSource {
 public:
  using Notify = std::function<void(const std::string& key)>;

  // Listens at once; errors as coordinator::Server::start(). The references must outlive it.
  static absl::StatusOr<std::unique_ptr<Coordinators>> start(CoordinatorsOptions options,
                                                             cluster::Cluster& cluster, const Clock& clock,
                                                             Logger log, Notify notify);
  // The same with a server that listens already: its options are not looked at.
  static std::unique_ptr<Coordinators> with_server(std::unique_ptr<coordinator::Server> server,
                                                   CoordinatorsOptions options, cluster::Cluster& cluster,
                                                   const Clock& clock, Logger log, Notify notify);
  ~Coordinators() override;

  const std::string& address() const { return server_->address(); }
  // Members are taken from now on (options.server.serves was false), or told to try the leader's address
  // (empty: it is not known).
  void serve() { server_->serve(); }
  void redirect(std::string leader) { server_->redirect(std::move(leader)); }
  std::size_t size() { return entries_.lock()->size(); }

  absl::Status job_seen(const std::string& key, const StoredJob& job) override;
  void job_over(const std::string& key) override;
  std::optional<plan::JobReport> report(const std::string& key) override;
  void pods_seen(const std::string& key, const std::vector<cluster::Pod>& pods) override;
  void pods_gone(const std::string& key, const std::vector<std::string>& names) override;
  void members_absent(const std::string& key, const std::vector<plan::AbsentMember>& absent) override;
  void leader_finished(const std::string& key) override;
  void last_words_kept(const std::string& key, std::int64_t attempt) override;
  void stop(const std::string& key, const plan::StopMembers& stop) override;
  std::map<std::string, std::string> pod_environment(const std::string& key) override;

 private:
  class Entry;
  Coordinators(std::unique_ptr<coordinator::Server> server, CoordinatorsOptions options,
               cluster::Cluster& cluster, const Clock& clock, Logger log, Notify notify);
  std::shared_ptr<Entry> find(const std::string& key);
  absl::StatusOr<std::shared_ptr<Entry>> make(const std::string& key, const StoredJob& job);

  const CoordinatorsOptions options_;
  cluster::Cluster& cluster_;
  const Clock& clock_;
  const Logger log_;
  const Notify notify_;
  std::unique_ptr<coordinator::Server> server_;
  Guarded<std::map<std::string, std::shared_ptr<Entry>>> entries_;
};

}  // namespace paceline::reconcile
