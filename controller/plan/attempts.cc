#include "controller/plan/attempts.h"

#include <algorithm>

#include "controller/diagnosis/diagnosis.h"

namespace paceline::plan {

namespace {

std::int64_t replacements(const api::Restarts& restarts, Role role, int index) {
  for (const api::Replacement& each : restarts.replacements) {
    if (each.role == role && each.index == index) return each.count;
  }
  return 0;
}

bool is_earlier(const api::TrainingJob& job, const cluster::Pod& pod) {
  return pod.spec.attempt < wanted_attempt(job, pod.spec.role, pod.spec.index);
}

}  // namespace

std::int64_t wanted_attempt(const api::TrainingJob& job, Role role, int index) {
  const api::Restarts& restarts = job.status.restarts;
  if (api::is_member(job, role)) return restarts.attempt;
  return restarts.full_attempt + replacements(restarts, role, index);
}

std::optional<std::int64_t> attempt_from_the_future(const Observed& observed) {
  std::int64_t latest = observed.job.status.restarts.attempt;
  for (const cluster::Pod& pod : observed.pods) {
    if (api::is_member(observed.job, pod.spec.role))
      latest = std::max<std::int64_t>(latest, pod.spec.attempt);
  }
  if (latest == observed.job.status.restarts.attempt) return std::nullopt;
  return latest;
}

std::optional<Observed> present(const Observed& observed) {
  const std::int64_t attempt = observed.job.status.restarts.attempt;
  const auto earlier = [&](const cluster::Pod& pod) { return is_earlier(observed.job, pod); };
  const bool other_report = observed.report && observed.report->attempt != attempt;
  if (!other_report && std::ranges::none_of(observed.pods, earlier)) return std::nullopt;
  Observed narrowed = observed;
  std::erase_if(narrowed.pods, earlier);
  if (other_report) {
    narrowed.report = JobReport{};
    narrowed.report->attempt = attempt;
  }
  return narrowed;
}

bool lives(const cluster::Pod& pod) {
  return !pod.ended() && diagnosis::disruption_of(pod) != api::RestartCause::kNodeLost;
}

bool earlier_lives(const Observed& observed, Role role) {
  return std::ranges::any_of(observed.pods, [&](const cluster::Pod& pod) {
    const bool concerned = api::is_member(observed.job, role) ? api::is_member(observed.job, pod.spec.role)
                                                              : pod.spec.role == role;
    return concerned && lives(pod) && is_earlier(observed.job, pod);
  });
}

}  // namespace paceline::plan
