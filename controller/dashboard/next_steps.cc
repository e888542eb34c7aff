#include "controller/dashboard/next_steps.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "controller/api/types.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/status_json.h"
#include "controller/cluster/kube/times.h"
#include "controller/dashboard/job_row.h"
#include "controller/plan/kubernetes_limits.h"
#include "controller/plan/restart_budget.h"
#include "controller/reconcile/what_if.h"

namespace paceline::dashboard {

namespace {

using kube::Json;

Json decision(std::string text, std::optional<double> in = std::nullopt) {
  return {{"text", std::move(text)}, {"in", in ? Json(*in) : Json()}};
}

std::optional<double> seconds_until(const Json& time, WallTime now) {
  if (!time.is_string()) return std::nullopt;
  const auto at = kube::parse_time(time.get<std::string>());
  if (!at || *at <= now) return std::nullopt;
  return std::chrono::duration<double>(*at - now).count();
}

void add_restarts(const Json& object, WallTime now, Json& decisions) {
  const Json& restarts = kube::at(object, {"status", "restarts"});
  if (const auto wait = seconds_until(kube::at(restarts, {"notBefore"}), now))
    decisions.push_back(
        decision("All members begin again, after a pause that grows with each restart", wait));
  for (const Json& each : kube::list_at(restarts, {"replacements"})) {
    if (const auto wait = seconds_until(kube::at(each, {"notBefore"}), now))
      decisions.push_back(decision(str_cat("A new pod takes the place of ", member_name(each)), wait));
  }
}

// The answers of `paceline explain`.
void add_what_if(api::TrainingJob job, const Json& object, WallTime now, Json& decisions) {
  job.status = kube::status_from_json(kube::at(object, {"status"}));
  for (const reconcile::WhatIf& each : reconcile::if_a_member_dies(job, plan::kubernetes_limits(), now)) {
    decisions.push_back(decision(str_cat("If ", paceline::member_name(each.role, each.index),
                                         " died now: ", reconcile::text_of(each))));
  }
  decisions.push_back(
      decision(str_cat("Restarts: ", plan::text_of(plan::restart_budget(job, job.status.restarts, now)))));
}

void add_stragglers(const Json& object, Json& decisions) {
  for (const Json& each : kube::list_at(object, {"status", "stragglers"})) {
    const std::string& action = kube::text_at(each, {"action"});
    const bool all = kube::text_at(each, {"kind"}) == api::name(api::StragglerKind::kAllSlow);
    const std::string who = all ? "all members" : member_name(each);
    const std::string what = action == "Replace"     ? str_cat("A successor takes over from ", who)
                             : action == "Rebalance" ? str_cat("The share of ", who, " becomes smaller")
                             : action == "Wait"      ? str_cat("Nothing is done about ", who, " yet")
                                                     : str_cat("Nothing is done about ", who);
    const std::string& why = kube::text_at(each, {"why"});
    decisions.push_back(decision(why.empty() ? what : str_cat(what, ": ", why)));
  }
}

}  // namespace

Json next_steps_json(const Json& object, WallTime now) {
  Json decisions = Json::array();
  const std::string phase = phase_of(object);
  if (has_ended(object)) {
    decisions.push_back(decision(str_cat("Nothing: the job has ended (", phase, ")")));
  } else if (kube::flag_at(object, {"spec", "runPolicy", "suspend"})) {
    decisions.push_back(
        decision(keeps_checkpoints(object)
                     ? "It waits until it is resumed, and goes on from its newest checkpoint"
                     : "It waits until it is resumed, and begins anew at step 0: its checkpoints "
                       "went with its pods"));
  } else {
    add_stragglers(object, decisions);
    add_restarts(object, now, decisions);
    api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
    if (parsed.job) add_what_if(*std::move(parsed.job), object, now, decisions);
  }
  return {{"decisions", std::move(decisions)}};
}

}  // namespace paceline::dashboard
