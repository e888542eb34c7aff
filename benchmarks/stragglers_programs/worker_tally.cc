#include "worker_tally.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/text.h"

namespace bench {

using paceline::Duration;
using paceline::str_cat;
using paceline::TimePoint;

namespace {

double milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace

void WorkerTally::turn(const paceline::pserver::TurnResult& turn, TimePoint now) {
  if (!began_) record_.first_turn = now;
  began_ = true;
  record_.steps = turn.step;
  record_.updates += turn.updates;
  record_.gradients += turn.gradients;
  if (turn.staleness >= 0) record_.staleness.applied(turn.staleness);
  if (turn.finished) {
    record_.last_dropped = turn.dropped;
    record_.finished = now;
    return;
  }
  if (turn.dropped) record_.staleness.dropped();
  if (has_last_) record_.computed += record_.last_until - record_.last_from;
  record_.last_from = record_.last_until = now;
  has_last_ = true;
}

void WorkerTally::computed(TimePoint now) {
  PL_CHECK(has_last_, "a turn is computed");
  record_.last_until = now;
}

absl::StatusOr<paceline::simulation::ClusterReport> together(std::span<const WorkerRecord> workers) {
  PL_CHECK(!workers.empty(), "somebody works");
  const WorkerRecord& first = workers.front();
  TimePoint begin = first.first_turn, end = first.finished;
  for (const WorkerRecord& worker : workers) {
    begin = std::min(begin, worker.first_turn);
    end = std::min(end, worker.finished);
  }
  paceline::simulation::ClusterReport report{.ms = milliseconds(end - begin),
                                             .steps = first.steps,
                                             .updates = first.updates,
                                             .applied = first.gradients};
  Duration busy{};
  for (std::size_t k = 0; k < workers.size(); ++k) {
    const WorkerRecord& worker = workers[k];
    if (worker.steps != first.steps || worker.updates != first.updates ||
        worker.gradients != first.gradients) {
      return absl::InternalError(str_cat("worker ", k, " heard of ", worker.steps, " steps, ", worker.updates,
                                         " updates and ", worker.gradients, " gradients, worker 0 of ",
                                         first.steps, ", ", first.updates, " and ", first.gradients));
    }
    report.staleness.add(worker.staleness);
    if (worker.last_dropped && worker.last_until < end) report.staleness.dropped();
    busy += worker.computed;
    busy += std::max(Duration{}, std::min(worker.last_until, end) - worker.last_from);
  }
  report.dropped = report.staleness.dropped_count();
  if (report.staleness.applied_count() != report.applied) {
    return absl::InternalError(str_cat("workers were told of ", report.staleness.applied_count(),
                                       " of their gradients that these were applied, and of ", report.applied,
                                       " that all together were"));
  }
  const double all = report.ms * static_cast<double>(workers.size());
  report.waiting = all > 0 ? 1 - milliseconds(busy) / all : 0;
  return report;
}

}  // namespace bench
