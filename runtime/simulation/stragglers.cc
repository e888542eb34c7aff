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
  if (options.replaced_after < 0)
    return out_of_range("replaced after", str_cat(options.replaced_after), "0 or more");
  return absl::OkStatus();
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

ModeResult rated(const Mode& mode, const ClusterReport& report) {
  return {mode, report, report.gradients_per_ms() * mode.samples_per_gradient()};
}

absl::StatusOr<ModeResult> simulate_mode(const Mode& mode, const StragglerOptions& options) {
  PL_ASSIGN_OR_RETURN(const auto policy, pserver::make_policy(mode.spec, {.total_steps = options.steps}));
  const bool synchronous = mode.spec.synchronization() == v1::ParameterServerSpec::SYNCHRONOUS;
  return rated(mode, simulate(*policy, {.workers = static_cast<int>(mode.spec.workers()),
                                        .delays = options.delays,
                                        .seed = options.seed,
                                        .work = mode.samples_per_gradient(),
                                        .late_workers_stop = options.late_workers_stop && synchronous}));
}

absl::StatusOr<StragglerCase> straggler_case(int workers, double log_deviation,
                                             const StragglerOptions& options) {
  PL_RETURN_IF_ERROR(check(workers, log_deviation, options));
  StragglerOptions study = options;
  study.delays.log_deviation = log_deviation;
  const std::vector<double> order = order_statistics(
      study.delays, workers, std::clamp(kDraws / workers, kMinRounds, kMaxRounds), options.seed);
  StragglerCase result{.workers = workers,
                       .log_deviation = log_deviation,
                       .slowest_ms = order.back(),
                       .best_backups = best_backups(order)};

  for (const Mode& mode : modes_to_compare(workers, result.best_backups, options.staleness)) {
    PL_ASSIGN_OR_RETURN(ModeResult done, simulate_mode(mode, study));
    result.modes.push_back(std::move(done));
    if (result.modes.size() > 1 || study.delays.slow_workers == 0) continue;
    StragglerOptions replacing = study;
    replacing.delays.slow_turns = study.replaced_after;
    Mode replaced = synchronous(workers);
    replaced.name = str_cat("slow replaced after ", study.replaced_after);
    PL_ASSIGN_OR_RETURN(ModeResult then, simulate_mode(replaced, replacing));
    result.modes.push_back(std::move(then));
  }
  for (const int backups : backups_to_try(workers, result.best_backups)) {
    PL_ASSIGN_OR_RETURN(const ModeResult done, simulate_mode(with_backups(workers, backups), study));
    const auto needed = static_cast<std::size_t>(workers - backups);
    result.backups.push_back(
        {backups, static_cast<double>(needed) / order[needed - 1], done.gradients_per_ms});
  }
  return result;
}

}  // namespace paceline::simulation
