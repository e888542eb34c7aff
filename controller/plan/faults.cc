#include "controller/plan/faults.h"

#include <vector>

#include "base/process_end.h"
#include "controller/plan/attempts.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

// The step that a member was last heard at, by this coordinator or an earlier one. An evaluator takes none.
std::optional<Step> last_step(const Observed& observed, Role role, int index) {
  if (role == Role::kEvaluator) return std::nullopt;
  if (observed.report) {
    for (const ReportedMember& member : observed.report->members) {
      if (member.role == role && member.index == index) return member.step;
    }
  }
  const api::MemberStatus* last = last_status(observed, role, index);
  return last != nullptr && last->step > 0 ? std::optional(last->step) : std::nullopt;
}

}  // namespace

diagnosis::Place place_of(const Observed& observed, Role role, int index) {
  const cluster::Pod* const pod = find_pod(observed, role, index);
  return {.role = role,
          .index = index,
          .pod_name = pod_name(observed.job, role, index, wanted_attempt(observed.job, role, index)),
          .pod = pod,
          .gone = pod == nullptr,
          .last_step = last_step(observed, role, index),
          .built_in = observed.job.spec.training.has_value()};
}

api::Fault fault_by_verdict(const Observed& observed) {
  const api::Fault& told = *observed.report->fault;
  return diagnosis::diagnose(place_of(observed, told.role, told.index), told);
}

std::optional<api::Fault> fault_by_pods(const Observed& observed) {
  std::vector<diagnosis::Place> failed;
  for (const cluster::Pod& pod : observed.pods) {
    if (!has_failed(observed, pod)) continue;
    failed.push_back(place_of(observed, pod.spec.role, pod.spec.index));
    failed.back().pod = &pod;
  }
  if (failed.empty()) return std::nullopt;
  return diagnosis::first_failure(failed);
}

api::Fault fault_of(const Observed& observed, const cluster::Pod& pod) {
  diagnosis::Place place = place_of(observed, pod.spec.role, pod.spec.index);
  place.pod = &pod;
  return diagnosis::diagnose(place);
}

bool left_as_told(const Observed& observed, const api::Fault& fault) {
  return observed.job.spec.training && fault.exit_code == kExitEnded;
}

}  // namespace paceline::plan
