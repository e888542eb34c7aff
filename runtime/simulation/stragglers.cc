#include "runtime/simulation/stragglers.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace paceline::simulation {
namespace {

// Enough for E[T_(k)] within about 0.1 %.
constexpr int kDraws = 2'000'000;
constexpr int kMinRounds = 1000, kMaxRounds = 100'000;
constexpr int kBackupPoints = 12;
constexpr int kMaxWorkers = 10'000;

absl::Status out_of_range(std::string_view what, const std::string& value, std::string_view allowed) {
  return absl::InvalidArgumentError(str_cat(what, " is ", value, "; allowed: ", allowed));
}

absl::Status check(int workers, double log_deviation, const StragglerOptions& options) {
  if (workers < 1 || workers > kMaxWorkers)
    return out_of_range("workers", str_cat(workers), str_cat("1 to ", kMaxWorkers));
  if (!(log_deviation >= 0 && log_deviation <= 3))
    return out_of_range("sigma", str_cat(log_deviation), "0 to 3");
  if (options.steps < 1 || options.steps > 1'000'000)
    return out_of_range("steps", str_cat(options.steps), "1 to 1000000");
  return absl::OkStatus();
}

absl::StatusOr<ModeResult> run(const Mode& mode, const DelayModel& delays, const StragglerOptions& options) {
  PL_ASSIGN_OR_RETURN(const auto policy, pserver::make_policy(mode.spec, {.total_steps = options.steps}));
  const bool synchronous = mode.spec.synchronization() == v1::ParameterServerSpec::SYNCHRONOUS;
  const ClusterReport report =
      simulate(*policy, {.workers = static_cast<int>(mode.spec.workers()),
                         .delays = delays,
                         .seed = options.seed,
                         .work = mode.samples_per_gradient(),
                         .late_workers_stop = options.late_workers_stop && synchronous});
  return ModeResult{mode, report, report.gradients_per_ms() * mode.samples_per_gradient()};
}

// 1, and on up to half of the workers, closer where few are spare, with the best among them.
std::vector<int> backups_to_try(int workers, int best) {
  std::vector<int> backups{best};
  const int most = workers / 2;
  for (int i = 0; i < kBackupPoints; ++i) {
    const double part = static_cast<double>(i + 1) / kBackupPoints;
    backups.push_back(std::max(1, static_cast<int>(std::lround(most * part * part))));
  }
  std::sort(backups.begin(), backups.end());
  backups.erase(std::unique(backups.begin(), backups.end()), backups.end());
  std::erase_if(backups, [&](int b) { return b < 1 || b >= workers; });
  return backups;
}

}  // namespace

absl::StatusOr<StragglerCase> straggler_case(int workers, double log_deviation,
                                             const StragglerOptions& options) {
  PL_RETURN_IF_ERROR(check(workers, log_deviation, options));
  DelayModel delays = options.delays;
  delays.log_deviation = log_deviation;
  const std::vector<double> order =
      order_statistics(delays, workers, std::clamp(kDraws / workers, kMinRounds, kMaxRounds), options.seed);
  StragglerCase result{.workers = workers,
                       .log_deviation = log_deviation,
                       .slowest_ms = order.back(),
                       .best_backups = best_backups(order)};

  std::vector<Mode> modes = {synchronous(workers)};
  if (result.best_backups > 0) {
    modes.push_back(with_backups(workers, result.best_backups));
    modes.push_back(dropping(workers, result.best_backups));
  }
  for (const int staleness : options.staleness) modes.push_back(bounded(workers, staleness));
  modes.push_back(asynchronous(workers));
  for (const Mode& mode : modes) {
    PL_ASSIGN_OR_RETURN(ModeResult done, run(mode, delays, options));
    result.modes.push_back(std::move(done));
  }
  for (const int backups : backups_to_try(workers, result.best_backups)) {
    PL_ASSIGN_OR_RETURN(const ModeResult done, run(with_backups(workers, backups), delays, options));
    const auto needed = static_cast<std::size_t>(workers - backups);
    result.backups.push_back(
        {backups, static_cast<double>(needed) / order[needed - 1], done.gradients_per_ms});
  }
  return result;
}

}  // namespace paceline::simulation
