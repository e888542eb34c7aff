#include "controller/reconcile/progress.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "controller/plan/rules.h"

namespace paceline::reconcile {

namespace {

// Of whom nothing more is to come: pod and phase.
std::vector<std::pair<std::string, std::string>> last_words(const api::Status& status) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const api::MemberStatus& member : status.members) {
    const bool failed = member.phase == cluster::pod_phase_name(cluster::PodPhase::kFailed);
    if (plan::says_finished(member) || failed || member.phase == plan::kLostPhase)
      words.emplace_back(member.pod, member.phase);
  }
  return words;
}

// Written within an interval, or as soon as the phase changes: by then the pods themselves tell.
bool same_but_for_arrivals(const api::Status& before, const api::Status& after) {
  if (last_words(before) != last_words(after)) return false;
  api::Status rest = before;
  rest.progress = after.progress;
  rest.members = after.members;
  rest.replica_statuses = after.replica_statuses;
  return rest == after;
}

// Figures of stragglers that are known, and on which the same is done.
bool same_but_for_figures(const std::vector<api::Straggler>& before,
                          const std::vector<api::Straggler>& after) {
  return std::ranges::equal(before, after, [](const api::Straggler& a, const api::Straggler& b) {
    return a.kind == b.kind && a.pod == b.pod && a.peer_pod == b.peer_pod && a.cause == b.cause &&
           a.action == b.action;
  });
}

}  // namespace

bool same_but_for_progress(const api::Status& before, const api::Status& after) {
  using enum api::Phase;
  if (before.phase == kStarting && after.phase == kStarting) return same_but_for_arrivals(before, after);
  api::Status rest = before;
  rest.progress = after.progress;
  // What members saved as they left is told once.
  if (after.phase == kRunning) rest.last_checkpoint = after.last_checkpoint;
  if (same_but_for_figures(rest.stragglers, after.stragglers)) {
    rest.stragglers = after.stragglers;
    for (api::Condition& each : rest.conditions) {
      const auto now = std::ranges::find(after.conditions, each.type, &api::Condition::type);
      if (each.type == api::kStraggling && now != after.conditions.end()) each.message = now->message;
    }
  }
  if (rest.members.size() != after.members.size()) return false;
  for (std::size_t i = 0; i < rest.members.size(); ++i) {
    if (plan::says_finished(rest.members[i]) != plan::says_finished(after.members[i])) return false;
    rest.members[i].phase = after.members[i].phase;  // pods that come and go are counted, too
    rest.members[i].step = after.members[i].step;
    rest.members[i].telemetry = after.members[i].telemetry;
  }
  return rest == after;
}

}  // namespace paceline::reconcile
