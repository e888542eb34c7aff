#include "controller/web/controller_metrics.h"

#include <string>
#include <vector>

namespace paceline::web {

namespace {

constexpr std::string_view kController = "trainingjob";
constexpr std::string_view kReconciles = "controller_runtime_reconcile_total";
constexpr std::string_view kReconcileTime = "controller_runtime_reconcile_time_seconds";
constexpr std::string_view kDepth = "workqueue_depth";
constexpr std::string_view kAdds = "workqueue_adds_total";
constexpr std::string_view kRetries = "workqueue_retries_total";
constexpr std::string_view kQueueTime = "workqueue_queue_duration_seconds";
constexpr std::string_view kWorkTime = "workqueue_work_duration_seconds";
constexpr std::string_view kRequests = "rest_client_requests_total";
constexpr std::string_view kLeader = "leader_election_master_status";
constexpr std::string_view kEvents = "paceline_events_total";
constexpr std::string_view kHistoryErrors = "paceline_history_errors_total";

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

ControllerMetrics::ControllerMetrics() {
  const std::vector<double> reconcile_bounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                1,     2.5,  5,     10,   20,  30,   60};
  const std::vector<double> queue_bounds = {1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000};
  metrics_.counter(kReconciles, "Passes over a job, by result: success, requeue_after, error.");
  metrics_.histogram(kReconcileTime, "How long a pass over a job took.", reconcile_bounds);
  metrics_.gauge(kDepth, "Keys that wait.");
  metrics_.counter(kAdds, "Keys that began to wait.");
  metrics_.counter(kRetries, "Keys that are tried again after an error.");
  metrics_.histogram(kQueueTime, "How long a key waited before it was taken.", queue_bounds);
  metrics_.histogram(kWorkTime, "How long the work on a key took.", queue_bounds);
  metrics_.counter(kRequests, "Requests to the API server; code <error>: there was no answer.");
  metrics_.gauge(kLeader, "1: this replica leads; 0: it does not.");
  metrics_.counter(kEvents,
                   "Events about jobs since this replica began: StragglerReplaced, ViewChanged, ...");
  metrics_.counter(
      kHistoryErrors,
      "Tries to write the history that failed: damaged, full, held (by another replica), failed.");
  for (const char* result : {"success", "requeue_after", "error"}) {
    metrics_.add(kReconciles, {{"controller", kController}, {"result", result}}, 0);
  }
  metrics_.add(kAdds, {{"name", kController}}, 0);
  metrics_.add(kRetries, {{"name", kController}}, 0);
  queue_depth(0);
  leading(false);
}

void ControllerMetrics::reconciled(std::string_view result, Duration time) {
  metrics_.add(kReconciles, {{"controller", kController}, {"result", result}});
  metrics_.observe(kReconcileTime, {{"controller", kController}}, seconds(time));
}
void ControllerMetrics::requested(std::string_view method, int status) {
  const std::string code = status == 0 ? "<error>" : std::to_string(status);
  metrics_.add(kRequests, {{"code", code}, {"method", method}});
}
void ControllerMetrics::leading(bool leads) {
  metrics_.set(kLeader, {{"name", "paceline-controller"}}, leads ? 1 : 0);
}
void ControllerMetrics::queue_depth(std::size_t depth) {
  metrics_.set(kDepth, {{"name", kController}}, static_cast<double>(depth));
}
void ControllerMetrics::event(std::string_view reason) {
  metrics_.add(kEvents, {{"reason", reason}});
}
void ControllerMetrics::history_error(std::string_view reason) {
  metrics_.add(kHistoryErrors, {{"reason", reason}});
}
void ControllerMetrics::on_adds(std::uint64_t count) {
  metrics_.add(kAdds, {{"name", kController}}, static_cast<double>(count));
}
void ControllerMetrics::on_taken(Duration waited) {
  metrics_.observe(kQueueTime, {{"name", kController}}, seconds(waited));
}
void ControllerMetrics::on_done(Duration worked) {
  metrics_.observe(kWorkTime, {{"name", kController}}, seconds(worked));
}
void ControllerMetrics::on_retry() {
  metrics_.add(kRetries, {{"name", kController}});
}
}  // namespace paceline::web
