#include "controller/plan/trouble.h"

#include <algorithm>

namespace paceline::plan {

const api::Condition* pod_trouble(const api::Status& status) {
  const auto running =
      std::ranges::find(status.conditions, api::name(api::Phase::kRunning), &api::Condition::type);
  if (running == status.conditions.end()) return nullptr;
  if (status.phase == api::Phase::kRunning) {  // the others train meanwhile
    const bool all_run =
        !running->status || running->reason == "MembersTrain" || running->reason == "PodsRun";
    return all_run ? nullptr : &*running;
  }
  if (status.phase != api::Phase::kStarting && status.phase != api::Phase::kRestarting) return nullptr;
  // A phase that begins tells its own condition the same as this one.
  const bool of_a_phase = std::ranges::any_of(status.conditions, [&](const api::Condition& each) {
    return each.status && each.message == status.message;
  });
  const bool told = !running->status && running->reason == status.reason &&
                    running->message == status.message && status.reason != kCreatingPods && !of_a_phase;
  return told ? &*running : nullptr;
}

std::string_view pod_advice(std::string_view reason) {
  struct Advice {
    std::string_view reason, advice;
  };
  static constexpr Advice kAdvice[] = {
      {kPodNotCreated,
       "the cluster refuses its pods: mend what the message names in the role's template, or make room where "
       "a quota is used up"},
      {"Unschedulable",
       "no node has room for it or suits it: add nodes, ask for less, or look at its nodeSelector, affinity "
       "and tolerations"},
      {"SchedulingGated",
       "something holds it back on purpose: see spec.schedulingGates of the pod, and who sets them"},
      {"ErrImagePull", "check the image's name and tag, and imagePullSecrets"},
      {"ImagePullBackOff", "check the image's name and tag, and imagePullSecrets"},
      {"InvalidImageName", "correct the image's name in the job"},
      {"CreateContainerConfigError", "a Secret or ConfigMap that the template names is missing"},
      {"FailedMount", "a volume, Secret or ConfigMap that the template names is missing or can't be mounted"},
      {"StartError",
       "the command can't be started: check command and args, and that the image has the program"},
      {"CrashLoopBackOff", "it ends again and again: read its log"},
      {"OOMKilled",
       "it needed more memory than resources.limits.memory allows: raise it, or use a smaller "
       "microBatchSize or recomputeActivations"},
      {"Evicted", "its node was short of memory or disk: ask for what it needs in resources.requests"},
  };
  const auto found = std::ranges::find(kAdvice, reason, &Advice::reason);
  return found == std::end(kAdvice) ? "" : found->advice;
}

}  // namespace paceline::plan
