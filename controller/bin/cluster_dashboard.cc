#include "controller/bin/cluster_dashboard.h"

#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/informer.h"
#include "controller/cluster/kube/pause.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/job_feed.h"
#include "controller/dashboard/job_samples.h"
#include "controller/dashboard/kube_place.h"
#include "controller/dashboard/server.h"
#include "controller/dashboard/token_gate.h"

namespace paceline::controller {

namespace {

constexpr Duration kReviewLimit = std::chrono::seconds(5);  // a request waits for it

// One line for each action: who, what, which job, and what came of it.
dashboard::JobActions::Audit audit_by(const Logger& log) {
  return [log](const dashboard::Viewer& viewer, dashboard::Action action, const std::string& job,
               const std::string& result) {
    log.info(str_cat("a viewer of the dashboard asked to ", dashboard::name(action), " a job: ", result),
             {{"reason", "Audit"},
              {"user", viewer.user},
              {"action", std::string(dashboard::name(action))},
              {"job", job},
              {"result", result}});
  };
}

class ClusterDashboardImpl final : public ClusterDashboard {
 public:
  ClusterDashboardImpl(ClusterDashboardOptions options, kube::Transport& transport, const Clock& clock,
                       const Logger& log)
      : clock_(clock),
        log_(log),
        api_(transport, clock, options.seed, stop_.get_token()),
        reviews_(transport, clock, options.seed + 1, stop_.get_token(), kube::real_pause, kReviewLimit),
        samples_(clock),
        history_(options.history
                     ? std::make_unique<dashboard::JobHistory>(*options.history, samples_, clock, log)
                     : nullptr),
        board_(clock),
        feed_(board_, samples_, history_.get()),
        place_(api_, samples_, clock, log,
               {.ns = options.ns,
                .instance = options.instance,
                .transport_of = std::move(options.transport_of),
                .stop = stop_.get_token(),
                .history = history_.get()}),
        gate_(
            reviews_, [this] { return namespaces(); }, clock),
        informer_(api_, {kube::kTrainingJobs, options.ns, ""}, feed_, clock, log, options.seed + 2,
                  [](const std::string&) {}) {}

  absl::Status serve(const std::string& address, const web::TlsFiles& tls) {
    PL_ASSIGN_OR_RETURN(server_, dashboard::Server::start(board_, place_,
                                                          {.version = PACELINE_VERSION,
                                                           .address = address,
                                                           .gate = &gate_,
                                                           .audit = audit_by(log_),
                                                           .tls = tls},
                                                          clock_));
    if (history_) history_->start();
    informer_.start();
    return absl::OkStatus();
  }

  ~ClusterDashboardImpl() override { stop_.request_stop(); }

  int port() const override { return server_->port(); }

 private:
  // Namespaces of jobs that are there come first.
  std::vector<std::string> namespaces() const {
    const std::set<std::string> live = board_.namespaces();
    std::vector<std::string> all(live.begin(), live.end());
    if (!history_) return all;
    for (const std::string& ns : history_->namespaces()) {
      if (!live.contains(ns)) all.push_back(ns);
    }
    return all;
  }

  const Clock& clock_;
  const Logger log_;
  std::stop_source stop_;  // of what is asked of the API server
  kube::ApiClient api_, reviews_;
  dashboard::JobSamples samples_;
  const std::unique_ptr<dashboard::JobHistory> history_;  // null: none is kept; outlives what feeds it
  dashboard::Board board_;
  dashboard::JobFeed feed_;
  dashboard::KubePlace place_;
  dashboard::TokenGate gate_;
  kube::Informer informer_;
  std::unique_ptr<dashboard::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterDashboard>> ClusterDashboard::start(ClusterDashboardOptions options,
                                                                          kube::Transport& transport,
                                                                          const Clock& clock,
                                                                          const Logger& log) {
  const std::string address = options.address;
  const web::TlsFiles tls = options.tls;
  auto dashboard = std::make_unique<ClusterDashboardImpl>(std::move(options), transport, clock, log);
  PL_RETURN_IF_ERROR(dashboard->serve(address, tls));
  return dashboard;
}

}  // namespace paceline::controller
