#include "controller/plan/restart_budget.h"

#include <algorithm>

#include "base/pluralize.h"
#include "base/text.h"

namespace paceline::plan {

namespace {

std::optional<Duration> window_of(const api::RunPolicy& policy) {
  if (!policy.restart_window_seconds) return std::nullopt;
  return Duration(std::chrono::seconds(*policy.restart_window_seconds));
}

std::int64_t count_since(const std::vector<api::RestartTime>& times, WallTime begin) {
  std::int64_t sum = 0;
  for (const api::RestartTime& each : times) sum += each.at > begin ? each.count : 0;
  return sum;
}

bool pull(WallTime latest, WallTime& time) {
  if (time <= latest) return false;
  time = latest;
  return true;
}
bool pull(WallTime latest, std::optional<WallTime>& time) {
  return time && pull(latest, *time);
}
bool pull(WallTime latest, std::vector<api::RestartTime>& times) {
  bool changed = false;
  for (api::RestartTime& each : times) changed |= pull(latest, each.at);
  return changed;
}

}  // namespace

RestartBudget restart_budget(const api::RunPolicy& policy, const std::vector<api::RestartTime>& times,
                             std::int64_t before, WallTime now) {
  const std::optional<Duration> window = window_of(policy);
  return {window ? count_since(times, now - *window) : before, policy.backoff_limit, window};
}

RestartBudget restart_budget(const api::TrainingJob& job, const api::Restarts& restarts, WallTime now) {
  return restart_budget(job.spec.run_policy, restarts.recent, restarts_of_ring(job, restarts, true), now);
}

void note_restart(const api::RunPolicy& policy, WallTime now, std::vector<api::RestartTime>& times) {
  const std::optional<Duration> window = window_of(policy);
  if (!window) return times.clear();
  std::erase_if(times, [&](const api::RestartTime& each) { return each.at <= now - *window; });
  if (times.size() >= kMostRestartTimes) {
    times[1].count += times[0].count;
    times.erase(times.begin());
  }
  times.push_back({now, 1});
}

void forget_restart(WallTime then, std::vector<api::RestartTime>& times) {
  const auto place = std::ranges::find_if(times.rbegin(), times.rend(),
                                          [&](const api::RestartTime& each) { return each.at <= then; });
  if (place == times.rend()) return;
  if (--place->count == 0) times.erase(std::next(place).base());
}

bool take_into_present(WallTime now, Duration longest, api::Restarts& restarts) {
  bool changed = pull(now, restarts.recent);
  changed |= pull(now + longest, restarts.not_before);
  for (api::Replacement& each : restarts.replacements) {
    changed |= pull(now, each.recent);
    changed |= pull(now, each.last);
    changed |= pull(now + longest, each.not_before);
  }
  return changed;
}

std::int64_t restarts_of_ring(const api::TrainingJob& job, const api::Restarts& restarts, bool charged) {
  std::int64_t sum = 0;
  for (const api::RestartCount& each : restarts.by_cause) {
    const bool resized = each.cause == api::RestartCause::kResized;
    if (api::is_member(job, each.role) && !resized && api::is_charged(each.cause) == charged)
      sum += each.count;
  }
  return sum;
}

std::string used_up(const RestartBudget& budget) {
  const std::string times = pluralize(budget.used, "time", "times");
  if (!budget.window)
    return str_cat("; the members were started again ", times,
                   " already (raise spec.runPolicy.backoffLimit, or set restartWindowSeconds)");
  return str_cat("; the members were started again ", times, " in ", format_duration(*budget.window),
                 " already (raise spec.runPolicy.backoffLimit, or shorten restartWindowSeconds)");
}

std::string text_of(const RestartBudget& budget) {
  return str_cat("backoffLimit ", budget.limit,
                 budget.window ? str_cat(" in ", format_duration(*budget.window)) : "", ", ",
                 std::max<std::int64_t>(budget.limit - budget.used, 0), " left");
}

}  // namespace paceline::plan
