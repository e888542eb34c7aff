// Why pods don't run yet, in the API server's or the kubelet's words: refused (quota, admission),
// unschedulable, an image that can't be pulled, a Secret that is missing. Shown in the status' reason and
// message and in condition Running.

#include <algorithm>

#include "base/text.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart.h"
#include "controller/plan/rules.h"
#include "controller/plan/trouble.h"

namespace paceline::plan {

namespace {

constexpr std::string_view kOnTheWay[] = {"", "Pending", "Scheduled", "ContainerCreating", "PodInitializing"};

struct Trouble {
  std::string reason, message;
};

// A pod's own news may be older than what its member says.
bool is_attached(const Observed& observed, const cluster::Pod& pod) {
  return observed.report && std::ranges::any_of(observed.report->members, [&](const ReportedMember& member) {
           return member.pod == pod.spec.name;
         });
}

std::optional<Trouble> trouble_of(const Observed& observed) {
  if (observed.create_failure && observed.create_failure->count > 0) {
    const CreateFailure& failure = *observed.create_failure;
    return Trouble{kPodNotCreated, str_cat("pod ", failure.pod, " could not be created: ", failure.error)};
  }
  for (const cluster::Pod& pod : observed.pods) {
    if (pod.phase != cluster::PodPhase::kPending || pod.deleting || is_attached(observed, pod)) continue;
    if (std::ranges::find(kOnTheWay, pod.reason) != std::end(kOnTheWay)) continue;
    return Trouble{
        pod.reason,
        str_cat(member_name(pod.spec.role, pod.spec.index), " (pod ", pod.spec.name, ") ",
                pod.message.empty() ? "does not start" : str_cat("does not start: ", pod.message))};
  }
  return std::nullopt;
}

// The others train meanwhile: condition Running stays true, with the reason.
void note_of_running(const Observed& observed, Plan& plan) {
  const auto running = std::ranges::find(plan.status.conditions, "Running", &api::Condition::type);
  if (running == plan.status.conditions.end() || !running->status) return;
  const auto trouble = trouble_of(observed);
  const char* const runs = observed.job.spec.training ? "MembersTrain" : "PodsRun";
  if (trouble ? running->reason == trouble->reason : running->reason == runs) return;
  const std::string message = trouble ? trouble->message : "all members have pods that run";
  set_condition(observed, "Running", true, trouble ? trouble->reason : runs, message, plan.status);
  if (trouble) record_event(observed, true, trouble->reason, message, "a pod does not start", plan);
}

}  // namespace

void rule_trouble(const Observed& observed, Plan& plan) {
  api::Status& status = plan.status;
  const bool replaces = is_elastic(observed.job) || starts_in_place(observed.job);
  if (status.phase == api::Phase::kRunning && replaces) return note_of_running(observed, plan);
  if (status.phase != api::Phase::kStarting && status.phase != api::Phase::kRestarting) return;
  if (const auto trouble = trouble_of(observed)) {
    const bool news = status.reason != trouble->reason;
    status.reason = trouble->reason;
    status.message = trouble->message;
    set_condition(observed, "Running", false, trouble->reason, trouble->message, status);
    if (!news) return;
    record_event(observed, true, trouble->reason, trouble->message, "a pod does not start", plan);
    return;
  }
  if (pod_trouble(status) == nullptr) return;
  status.reason = kCreatingPods;
  status.message = "all pods are on their way";
  set_condition(observed, "Running", false, status.reason, status.message, status);
}

}  // namespace paceline::plan
