#include "tests/simulation/handover_checks.h"

#include <algorithm>

#include "controller/plan/stragglers.h"

namespace paceline::simulation {

namespace {

using api::ReplacementOutcome;
using api::StragglerReplacement;

// The successor of one that was slow: within the window it is not replaced, nor is one whose successor did
// not come.
bool forbids(const StragglerReplacement& earlier, const StragglerReplacement& next) {
  if (earlier.role != next.role || earlier.index != next.index) return false;
  return (has_passed_on(earlier.outcome) && earlier.successor == next.pod) ||
         (earlier.outcome == ReplacementOutcome::kNoSuccessor && earlier.pod == next.pod);
}

}  // namespace

void HandoverChecks::begins(const reconcile::StoredJob& job, const StragglerReplacement& next) {
  const api::StragglerPolicy& policy = job.job.spec.stragglers;
  trace_.add("a handover begins: ", next.pod, " on ", next.host, " to ", next.successor);
  std::int64_t within = 1;
  for (const auto& [key, each] : known_) {
    if (key.first != job.uid || next.at - each.as_told.at >= std::chrono::seconds(policy.window_seconds))
      continue;
    ++within;
    if (forbids(each.as_told, next))
      trace_.fail("nobody is replaced again and again", next.pod, " is, and ", each.as_told.pod,
                  " was: ", each.as_told.message);
  }
  if (within > policy.max_replacements)
    trace_.fail("replacements are kept to maxReplacements", within, " within ", policy.window_seconds,
                " s, of ", policy.max_replacements);
}

void HandoverChecks::on_status(const reconcile::StoredJob& before, const reconcile::StoredJob& after) {
  const auto& was = before.job.status.straggler_replacements;
  const auto& is = after.job.status.straggler_replacements;
  if (was == is) return;
  if (std::ranges::count(is, ReplacementOutcome::kUnderWay, &StragglerReplacement::outcome) > 1)
    trace_.fail("one is replaced at a time", is.back().pod, " and another one");
  for (const StragglerReplacement& each : was) {
    const auto same = std::ranges::find(is, each.successor, &StragglerReplacement::successor);
    if (same == is.end() && is.size() < api::kMostStragglerReplacements)
      trace_.fail("replacements are not forgotten", each.pod, " was replaced");
  }
  for (const StragglerReplacement& each : is) {
    const auto [known, is_new] = known_.try_emplace({after.uid, each.successor}, Known{each, trace_.now()});
    StragglerReplacement& told = known->second.as_told;
    if (is_new) {
      known_.erase(known);
      begins(after, each);
      known_[{after.uid, each.successor}] = {each, trace_.now()};
      continue;
    }
    if (told.outcome != each.outcome) {
      trace_.add("the handover of ", each.pod, " to ", each.successor, ": ", api::name(each.outcome));
      // The coordinator may have handed over as it was given up.
      const bool may =
          told.outcome == ReplacementOutcome::kUnderWay ||
          (told.outcome == ReplacementOutcome::kReplaced ? each.outcome == ReplacementOutcome::kAsSlow
                                                         : each.outcome == ReplacementOutcome::kReplaced);
      if (!may)
        trace_.fail("what came of a replacement is for good", each.pod, ": ", api::name(told.outcome),
                    " becomes ", api::name(each.outcome));
    }
    told = each;
  }
}

void HandoverChecks::at_calm(TimePoint now, TimePoint calm, const reconcile::StoredJob* job) {
  constexpr Duration kSlack = std::chrono::minutes(1);
  if (job == nullptr) return;
  std::map<std::string, int> pods;
  bool one_is_under_way = false;
  for (const auto& [key, each] : known_) {
    if (key.first != job->uid || each.as_told.outcome != ReplacementOutcome::kUnderWay) continue;
    one_is_under_way = true;
    if (now - std::max(calm, each.since) > plan::kHandoverTimeout + kSlack)
      trace_.fail("a handover ends in time", each.as_told.pod, " is under way to be replaced since ",
                  format_duration(now - each.since));
  }
  for (const cluster::Pod* const pod : api_.pods()) {
    if (pod->spec.job_uid == job->uid && !pod->ended() && !pod->deleting)
      ++pods[member_name(pod->spec.role, pod->spec.index)];
  }
  std::erase_if(doubled_, [&](const auto& each) { return one_is_under_way || pods[each.first] < 2; });
  for (const auto& [place, count] : pods) {
    if (one_is_under_way || count < 2) continue;
    const TimePoint since = doubled_.try_emplace(place, now).first->second;
    if (now - since > kSlack) trace_.fail("no successor is left over", place, " has ", count, " pods");
  }
}

bool HandoverChecks::is_under_way(const reconcile::StoredJob& job) {
  const auto& all = job.job.status.straggler_replacements;
  return std::ranges::find(all, ReplacementOutcome::kUnderWay, &StragglerReplacement::outcome) != all.end();
}

bool HandoverChecks::is_successor(const cluster::Pod& pod) const {
  return known_.contains({pod.spec.job_uid, pod.spec.name});
}

bool HandoverChecks::is_replaced(const std::string& job_uid, const std::string& pod) const {
  return std::ranges::any_of(known_, [&](const auto& each) {
    const ReplacementOutcome outcome = each.second.as_told.outcome;
    const bool may_be = outcome == ReplacementOutcome::kUnderWay || has_passed_on(outcome);
    return each.first.first == job_uid && each.second.as_told.pod == pod && may_be;
  });
}

HandoverChecks::Counts HandoverChecks::counts() const {
  Counts counts;
  for (const auto& [_, each] : known_) {
    const ReplacementOutcome outcome = each.as_told.outcome;
    ++counts.begun;
    counts.done += has_passed_on(outcome) ? 1 : 0;
  }
  return counts;
}

}  // namespace paceline::simulation
