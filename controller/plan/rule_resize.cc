// Replicas were edited: an elastic ring goes on in its new size (elastic.h); else all members start again in
// it, from the newest checkpoint.

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/plan/elastic.h"
#include "controller/plan/restart.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

bool rule_resize(const Observed& observed, Plan& plan) {
  const std::int64_t size = plan.status.restarts.size, wanted = api::member_count(observed.job);
  if (size == 0 || size == wanted || training_finished(observed)) return false;
  if (is_elastic(observed.job)) {
    resize(observed, plan);
    return false;
  }
  const std::string why =
      str_cat("the job had ", pluralize(size, "member", "members"), " and shall have ", wanted);
  constexpr api::RestartCause kCause = api::RestartCause::kResized;
  begin_attempt(observed, Role::kWorker, kCause, api::name(kCause), why, observed.limits.stop_grace, plan);
  plan.stop_members = StopMembers{why, true};
  return true;
}

}  // namespace paceline::plan
