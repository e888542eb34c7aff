#include "controller/plan/attempts.h"

#include <algorithm>
#include <tuple>

#include "controller/diagnosis/diagnosis.h"
#include "controller/plan/elastic.h"

namespace paceline::plan {

namespace {

std::int64_t replacements(const api::Restarts& restarts, Role role, int index) {
  for (const api::Replacement& each : restarts.replacements) {
    if (each.role == role && each.index == index) return each.count;
  }
  return 0;
}

std::int64_t successors(const api::Restarts& restarts, Role role, int index) {
  for (const api::Replacement& each : restarts.replacements) {
    if (each.role == role && each.index == index) return each.successors;
  }
  return 0;
}

bool is_earlier(const api::TrainingJob& job, const cluster::Pod& pod) {
  return pod.spec.attempt < wanted_attempt(job, pod.spec.role, pod.spec.index);
}

// Whether this is the name of a pod that was to take over, and has not.
bool is_successors_name(const api::TrainingJob& job, const std::string& pod) {
  return std::ranges::any_of(job.status.straggler_replacements, [&](const api::StragglerReplacement& each) {
    return each.successor == pod && !has_passed_on(each.outcome);
  });
}

bool is_successor(const api::TrainingJob& job, const cluster::Pod& pod) {
  return pod.spec.attempt > wanted_attempt(job, pod.spec.role, pod.spec.index) &&
         pod.spec.attempt <= newest_number(job, pod.spec.role, pod.spec.index);
}

}  // namespace

void take_next(api::Replacement& place) {
  place.count += place.successors + 1;
  place.successors = 0;
}

api::Replacement& replacement_of(api::Restarts& restarts, Role role, std::int64_t index) {
  const auto order = [](const api::Replacement& each) { return std::tuple(each.role, each.index); };
  const auto place = std::ranges::lower_bound(restarts.replacements, std::tuple(role, index), {}, order);
  if (place != restarts.replacements.end() && place->role == role && place->index == index) return *place;
  return *restarts.replacements.insert(place, {.role = role, .index = index});
}

std::int64_t next_attempt(const api::TrainingJob& job) {
  const api::Restarts& restarts = job.status.restarts;
  std::int64_t most = 0;
  for (const api::Replacement& each : restarts.replacements) {
    if (api::is_member(job, each.role)) most = std::max(most, each.count + each.successors);
  }
  return restarts.attempt + most + 1;
}

std::int64_t wanted_attempt(const api::TrainingJob& job, Role role, int index) {
  const api::Restarts& restarts = job.status.restarts;
  const std::int64_t first = api::is_member(job, role) ? restarts.attempt : restarts.full_attempt;
  return first + replacements(restarts, role, index);
}

std::int64_t newest_number(const api::TrainingJob& job, Role role, int index) {
  return wanted_attempt(job, role, index) + successors(job.status.restarts, role, index);
}

std::optional<std::int64_t> attempt_from_the_future(const Observed& observed) {
  std::optional<std::int64_t> latest;
  for (const cluster::Pod& pod : observed.pods) {
    if (!api::is_member(observed.job, pod.spec.role)) continue;
    if (pod.spec.attempt > newest_number(observed.job, pod.spec.role, pod.spec.index))
      latest = std::max<std::int64_t>(latest.value_or(0), pod.spec.attempt);
  }
  return latest;
}

std::optional<Observed> present(const Observed& observed) {
  const std::int64_t attempt = observed.job.status.restarts.attempt;
  const auto other = [&](const cluster::Pod& pod) {
    return is_earlier(observed.job, pod) || is_successor(observed.job, pod);
  };
  const auto& successors_failure = observed.create_failure;
  const bool other_failure = successors_failure && is_successors_name(observed.job, successors_failure->pod);
  const bool other_report = observed.report && observed.report->attempt != attempt;
  if (!other_report && !other_failure && std::ranges::none_of(observed.pods, other)) return std::nullopt;
  Observed narrowed = observed;
  std::erase_if(narrowed.pods, other);
  if (other_failure) narrowed.create_failure.reset();
  if (other_report) {
    narrowed.report = JobReport{};
    narrowed.report->attempt = attempt;
  }
  return narrowed;
}

bool lives(const cluster::Pod& pod) {
  return !pod.ended() && diagnosis::disruption_of(pod) != api::RestartCause::kNodeLost;
}

bool earlier_lives(const Observed& observed, Role role, int index) {
  const api::Restarts& restarts = observed.job.status.restarts;
  const bool member = api::is_member(observed.job, role);
  const bool role_together = api::restart_scope(observed.job, role) != api::RestartScope::kReplica;
  return std::ranges::any_of(observed.pods, [&](const cluster::Pod& pod) {
    if (!lives(pod) || !is_earlier(observed.job, pod)) return false;
    const bool same_role = pod.spec.role == role;
    if (pod.spec.attempt < (member ? restarts.attempt : restarts.full_attempt))
      return member ? api::is_member(observed.job, pod.spec.role) : same_role;
    // One that was replaced in this attempt. A ring fences it off (elastic.h): nobody waits for its end.
    return !is_elastic(observed.job, pod.spec.role) && same_role &&
           (role_together || pod.spec.index == index);
  });
}

}  // namespace paceline::plan
