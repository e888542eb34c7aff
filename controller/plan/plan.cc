#include "controller/plan/plan.h"

#include <algorithm>

#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/requests.h"
#include "controller/plan/restart.h"
#include "controller/plan/restart_budget.h"
#include "controller/plan/rules.h"
#include "controller/plan/stragglers.h"

namespace paceline::plan {

bool is_terminal(api::Phase phase) {
  return phase == api::Phase::kSucceeded || phase == api::Phase::kFailed;
}

const char* job_state_name(JobState state) {
  switch (state) {
    case JobState::kForming:
      return "Forming";
    case JobState::kRunning:
      return "Running";
    case JobState::kDraining:
      return "Draining";
    case JobState::kFinished:
      return "Finished";
    case JobState::kFailed:
      return "Failed";
    case JobState::kStopped:
      return "Stopped";
  }
  return "?";
}

namespace {

// Its members go on by themselves, as they do while no controller runs. The condition is that of a spec that
// the parser refuses: it asks for what this controller can't give.
void leave_alone(const Observed& whole, Plan& plan) {
  const auto known = std::ranges::find(plan.status.conditions, api::kInvalidSpec, &api::Condition::type);
  const bool is_news = known == plan.status.conditions.end() || !known->status;
  plan.status_reason = whole.refusal;
  set_condition(whole, api::kInvalidSpec, true, "Refused", whole.refusal, plan.status);
  if (is_news)
    record_event(whole, true, api::kInvalidSpec, str_cat("the job is left as it is: ", whole.refusal),
                 "its members have no coordinator", plan);
}

}  // namespace

Plan plan(const Observed& whole) {
  Plan plan;
  plan.status = whole.job.status;
  const std::string& manager = whole.job.spec.run_policy.managed_by;
  if (!api::is_ours(manager)) {
    plan.status_reason = str_cat("it is managed by ", manager);
    return plan;
  }
  if (!whole.refusal.empty()) {
    leave_alone(whole, plan);
    return plan;
  }
  if (const auto later = attempt_from_the_future(whole)) {
    const bool replaces = is_elastic(whole.job) || starts_in_place(whole.job);
    if (!replaces) plan.status.restarts.attempt = *later;  // else one of them was replaced
    plan.status_reason = "the job is an old copy: its pods are of a later attempt";
    requeue(whole.limits.refresh, plan);
    return plan;
  }
  const std::optional<Observed> narrowed = present(whole);
  const Observed& observed = narrowed ? *narrowed : whole;
  if (plan.status.conditions.empty())
    set_condition(observed, api::kCreated, true, "Accepted", "the job is accepted", plan.status);
  note_unknown(observed, plan.status);
  if (take_into_present(whole.now, whole.limits.longest_back_off, plan.status.restarts))
    requeue(Duration::zero(), plan);
  settle(whole, plan);
  if (settle_handover(whole, plan)) return plan;
  const bool ended = rule_stop(observed, plan) || rule_finished(observed, plan) ||
                     rule_suspend(observed, plan) || rule_deadline(observed, plan) ||
                     rule_resize(observed, plan);
  Finding finding = ended ? Finding::kDecided : rule_provisional(whole, plan);
  if (finding == Finding::kNone) finding = rule_failure(observed, plan);
  if (finding == Finding::kNone) {
    rule_lost(observed, plan);
    if (is_terminal(plan.status.phase)) {
      finding = Finding::kDecided;
    } else {
      rule_avoidance(observed, whole, plan);
      rule_create_pods(observed, whole, plan);
    }
  } else if (finding == Finding::kAwaited) {
    create_auxiliary(observed, whole, plan);
  }
  if (finding != Finding::kDecided) {
    rule_auxiliary(observed, plan);
  } else if (!ended && !is_terminal(plan.status.phase)) {
    report_lost_auxiliary(observed, plan);  // with the ring: the status will say so, and it is no news then
  }
  if (finding == Finding::kNone) rule_success(observed, plan);
  rule_stale_pods(whole, plan);
  rule_trouble(observed, plan);
  rule_status(observed, whole, plan);
  rule_requests(observed, plan);
  return plan;
}

}  // namespace paceline::plan
