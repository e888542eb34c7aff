#include "controller/dashboard/next_steps.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/status_json.h"
#include "controller/cluster/kube/times.h"
#include "controller/dashboard/job_row.h"
#include "controller/plan/restart_budget.h"

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
  const api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  if (!parsed.job) return;
  const api::Status status = kube::status_from_json(kube::at(object, {"status"}));
  const plan::RestartBudget budget = plan::restart_budget(*parsed.job, status.restarts, now);
  decisions.push_back(
      decision(str_cat(budget.is_used_up() ? "The next failure that counts ends the job"
                                           : "If a member fails, the job goes on without it or restarts",
                       "; ", plan::text_of(budget))));
}

void add_stragglers(const Json& object, Json& decisions) {
  for (const Json& each : kube::list_at(object, {"status", "stragglers"})) {
    const std::string& action = kube::text_at(each, {"action"});
    const std::string who = each.contains("role") ? member_name(each) : "all members";
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
    decisions.push_back(decision("It waits until it is resumed, and goes on from its newest checkpoint"));
  } else {
    add_stragglers(object, decisions);
    add_restarts(object, now, decisions);
  }
  return {{"decisions", std::move(decisions)}};
}

}  // namespace paceline::dashboard
