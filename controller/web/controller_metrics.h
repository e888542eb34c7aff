#pragma once

// The controller's metrics of itself by their names, docs/metrics.md: those of controller-runtime and
// client-go, where they have one, so that dashboards made for them work. Thread-safe.

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "controller/queue/work_queue.h"
#include "controller/web/metrics.h"

namespace paceline::web {

class ControllerMetrics final : public queue::QueueObserver {
 public:
  ControllerMetrics();

  // result: "success", "requeue_after", "error".
  void reconciled(std::string_view result, Duration time);
  void requested(std::string_view method, int status);  // status 0: no answer
  void leading(bool leads);
  void queue_depth(std::size_t depth);
  void event(std::string_view reason);
  void history_error(std::string_view reason);

  // queue::QueueObserver
  void on_adds(std::uint64_t count) override;
  void on_taken(Duration waited) override;
  void on_done(Duration worked) override;
  void on_retry() override;

  std::string text() const { return metrics_.text(); }

 private:
  Metrics metrics_;
};

}  // namespace paceline::web
