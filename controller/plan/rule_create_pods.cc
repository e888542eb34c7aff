// Creates what is missing, in batches that may double (a command that fails at once fails few times): at
// first Limits::first_batch, then as many as there are. Names are deterministic, so what a stale list hides
// is refused by the cluster. A member's place stays empty while one of an earlier attempt still lives, and
// until a restart's back-off has passed; so does that of a member which
// the others may go on without, until the coordinator has said that they do (rule_lost). Whose work is done
// has no other after it, whoever deletes its pod.

#include <algorithm>

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"
#include "controller/plan/stragglers.h"
#include "controller/plan/trouble.h"

namespace paceline::plan {

namespace {

// An auxiliary pod had ended, and its policy let that be (rule_auxiliary): a deletion doesn't
// change that.
bool ended_auxiliary(const Observed& observed, const Slot& slot) {
  const api::MemberStatus* last = last_status(observed, slot.role, slot.index);
  return last != nullptr && !api::is_member(observed.job, slot.role) &&
         last->phase == cluster::pod_phase_name(cluster::PodPhase::kFailed);
}

// The place of a ring's member whose pod was never made, or is gone before the coordinator of its view has
// seen it: a replacement, or one more.
bool is_new(const Observed& observed, const Slot& slot) {
  if (!is_elastic(observed.job, slot.role)) return false;
  if (last_status(observed, slot.role, slot.index) == nullptr) return true;
  if (observed.report->generation.value == 0) return false;
  const std::string name =
      pod_name(observed.job, slot.role, slot.index, wanted_attempt(observed.job, slot.role, slot.index));
  return std::ranges::none_of(observed.report->members,
                              [&](const ReportedMember& member) { return member.pod == name; });
}

bool backs_off(const Observed& observed, const Slot& slot, Plan& plan) {
  for (const api::Replacement& each : observed.job.status.restarts.replacements) {
    if (each.role != slot.role || each.index != slot.index || !each.not_before) continue;
    if (*each.not_before <= observed.now) continue;
    requeue(*each.not_before - observed.now, plan);
    return true;
  }
  return false;
}

// A pod with another token than the job's: while one is there, its node's kubelet may give that to others,
// too.
bool refused_lives(const Observed& whole) {
  return whole.report && std::ranges::any_of(whole.pods, [&](const cluster::Pod& pod) {
           const auto& refused = whole.report->refused;
           return lives(pod) && std::ranges::find(refused, pod.uid) != refused.end();
         });
}

std::vector<Slot> missing_slots(const Observed& observed, const Observed& whole,
                                const std::vector<Slot>& slots, Plan& plan) {
  std::vector<Slot> missing;
  for (const Slot& slot : slots) {
    if (find_pod(observed, slot.role, slot.index) != nullptr || is_lost(observed, slot.role, slot.index))
      continue;
    if (has_finished(observed, slot.role, slot.index) || ended_auxiliary(observed, slot)) continue;
    if (view_goes_on(observed) && may_be_spare(observed, slot) && !is_new(observed, slot)) continue;
    if (is_elastic(observed.job, slot.role) && refused_lives(whole)) continue;
    if (!earlier_lives(whole, slot.role, slot.index) && !backs_off(observed, slot, plan))
      missing.push_back(slot);
  }
  return missing;
}

// As many as one batch; `all`: of how many places.
void create_missing(const Observed& observed, const Observed& whole, const std::vector<Slot>& missing,
                    std::size_t all, Plan& plan) {
  const auto batch = std::clamp(
      all - missing.size(), static_cast<std::size_t>(std::max(1, observed.limits.first_batch)),
      static_cast<std::size_t>(std::max(observed.limits.first_batch, observed.limits.largest_batch)));
  for (std::size_t i = 0; i < std::min(batch, missing.size()); ++i) {
    const Slot& slot = missing[i];
    cluster::PodSpec spec = pod_spec(observed, slot);
    if (is_elastic(observed.job, slot.role)) {
      spec.avoid_host = silent_host(whole);
      spec.shunned_hosts = slow_hosts(observed.job, observed.now);
    }
    plan.actions.push_back(CreatePod{std::move(spec), str_cat(member_name(slot.role, slot.index), " of ",
                                                              pluralize(all, "pod", "pods"), " is missing")});
  }
  if (missing.size() > batch) requeue(Duration::zero(), plan);
}

}  // namespace

void create_auxiliary(const Observed& observed, const Observed& whole, Plan& plan) {
  const std::vector<Slot> slots = desired_slots(observed.job);
  std::vector<Slot> missing = missing_slots(observed, whole, slots, plan);
  std::erase_if(missing, [&](const Slot& slot) { return api::is_member(observed.job, slot.role); });
  create_missing(observed, whole, missing, slots.size(), plan);
}

void rule_create_pods(const Observed& observed, const Observed& whole, Plan& plan) {
  if (training_finished(observed)) return;
  const auto& not_before = observed.job.status.restarts.not_before;
  if (not_before && *not_before > observed.now) return requeue(*not_before - observed.now, plan);
  const std::vector<Slot> slots = desired_slots(observed.job);
  const std::vector<Slot> missing = missing_slots(observed, whole, slots, plan);
  plan.status.restarts.size = api::member_count(observed.job);
  if (missing.empty()) return create_successor(observed, whole, plan);
  create_missing(observed, whole, missing, slots.size(), plan);
  if (!plan.status.start_time) {
    plan.status.start_time = observed.now;
    if (!observed.keeps_checkpoints) {
      record_event(
          observed, true, "CheckpointsNotKept",
          "checkpoints lie in the pod of rank 0 and go with it: after a suspension, with another size, "
          "or without one of its members training begins anew at step 0; mount a volume where they "
          "are written",
          "its template has no volume for them", plan);
    }
  }
  enter_phase(observed, api::Phase::kStarting, kCreatingPods,
              str_cat("creating ", slots.size(), slots.size() == 1 ? " pod" : " pods"), plan);
}

}  // namespace paceline::plan
