#include "controller/web/controller_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::web {
namespace {

using ::testing::HasSubstr;

TEST(ControllerMetricsTest, NamesAreThoseThatDashboardsKnow) {
  ControllerMetrics metrics;
  metrics.reconciled("error", std::chrono::milliseconds(20));
  metrics.requested("GET", 200);
  metrics.requested("PATCH", 0);
  metrics.leading(true);
  metrics.queue_depth(7);
  metrics.event("StragglerReplaced");
  metrics.history_error("full");
  metrics.on_adds(2);
  metrics.on_taken(std::chrono::milliseconds(5));
  metrics.on_done(std::chrono::milliseconds(5));
  metrics.on_retry();
  const std::string text = metrics.text();
  for (const char* line : {
           "controller_runtime_reconcile_total{controller=\"trainingjob\",result=\"error\"} 1\n",
           "controller_runtime_reconcile_total{controller=\"trainingjob\",result=\"success\"} 0\n",
           "controller_runtime_reconcile_time_seconds_bucket{controller=\"trainingjob\",le=\"0.025\"} 1\n",
           "workqueue_depth{name=\"trainingjob\"} 7\n",
           "workqueue_adds_total{name=\"trainingjob\"} 2\n",
           "workqueue_retries_total{name=\"trainingjob\"} 1\n",
           "workqueue_queue_duration_seconds_bucket{name=\"trainingjob\",le=\"0.01\"} 1\n",
           "workqueue_work_duration_seconds_sum{name=\"trainingjob\"} 0.005\n",
           "rest_client_requests_total{code=\"200\",method=\"GET\"} 1\n",
           "rest_client_requests_total{code=\"<error>\",method=\"PATCH\"} 1\n",
           "leader_election_master_status{name=\"paceline-controller\"} 1\n",
           "paceline_events_total{reason=\"StragglerReplaced\"} 1\n",
           "paceline_history_errors_total{reason=\"full\"} 1\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace paceline::web
