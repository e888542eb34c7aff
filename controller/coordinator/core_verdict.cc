#include "controller/coordinator/core_verdict.h"

#include <algorithm>
#include <set>

#include "base/process_end.h"
#include "base/text.h"

namespace paceline::coordinator {

namespace {

bool is_hard(const Evidence& evidence) {
  return !evidence.accusing;
}

bool serves(const Surroundings& around, int slot) {
  const auto at = static_cast<std::size_t>(slot);
  return at < around.places.size() && around.places[at].serves;
}

// All are alive and talk to the coordinator. One accuser that has left is worth less than its own failure.
Judgement judge_soft(std::span<const Evidence> evidence, std::span<const Accusation> accusations,
                     const Surroundings& around) {
  const auto first_to_leave = [&]() -> Judgement {
    const auto first = std::min_element(evidence.begin(), evidence.end(),
                                        [](const auto& a, const auto& b) { return a.since < b.since; });
    return {first->slot, first->kind, first->text, {}};
  };
  if (accusations.empty()) return first_to_leave();
  const Suspect suspect = find_suspect(accusations, around);
  if (suspect.accusers <= 1 && !evidence.empty()) return first_to_leave();
  const bool named = suspect.accusers > 0;
  const auto said = std::find_if(accusations.begin(), accusations.end(), [&](const Accusation& a) {
    return (named ? a.accused : a.accuser) == suspect.slot;
  });
  const auto peers = [](std::int64_t count) { return str_cat(count, count == 1 ? " peer" : " peers"); };
  std::string lost = "it lost its link to a server that others go on with";
  if (named) {
    lost = str_cat(peers(suspect.accusers), " lost the link to it");
  } else if (serves(around, suspect.slot)) {
    const auto own = std::count_if(accusations.begin(), accusations.end(),
                                   [&](const Accusation& a) { return a.accuser == suspect.slot; });
    lost = str_cat("it lost its links to ", peers(own));
  }
  return {suspect.slot,
          FaultKind::kUnreachable,
          str_cat(lost, ", though it still talks to the coordinator: ", said->reason),
          {},
          suspect.sure};
}

const char* what_happened(FaultKind kind) {
  switch (kind) {
    case FaultKind::kMissing:
      return "never attached";
    case FaultKind::kDead:
      return "died";
    case FaultKind::kFrozen:
      return "is frozen";
    case FaultKind::kFailed:
      return "failed";
    case FaultKind::kUnreachable:
      return "can't be reached by its peers";
    case FaultKind::kDiverged:
      return "has diverged";
  }
  return "is lost";
}

}  // namespace

bool has_hard(std::span<const Evidence> evidence) {
  return std::any_of(evidence.begin(), evidence.end(), is_hard);
}

bool all_follow(std::span<const Evidence> evidence) {
  return !evidence.empty() &&
         std::all_of(evidence.begin(), evidence.end(), [](const Evidence& e) { return e.follows; });
}

std::optional<Judgement> judge(std::span<const Evidence> evidence, std::span<const Accusation> accusations,
                               const Surroundings& around) {
  if (evidence.empty() && accusations.empty()) return std::nullopt;
  Judgement result;
  const Evidence* root = nullptr;
  for (const Evidence& e : evidence) {
    if (is_hard(e) && (root == nullptr || std::pair(e.since, e.slot) < std::pair(root->since, root->slot)))
      root = &e;
  }
  if (root != nullptr) {
    result = {root->slot, root->kind, root->text, {}};
  } else {
    result = judge_soft(evidence, accusations, around);
  }
  std::set<int> victims;
  for (const Evidence& e : evidence) victims.insert(e.slot);
  for (const Accusation& a : accusations) victims.insert(a.accuser);
  victims.erase(result.culprit);
  result.victims.assign(victims.begin(), victims.end());
  return result;
}

std::string verdict_message(const Verdict& verdict) {
  std::string who;
  const auto add = [&who](const std::string& part) { who += (who.empty() ? "" : ", ") + part; };
  if (verdict.rank >= 0) add(str_cat("rank ", verdict.rank));
  if (verdict.pid != 0) {
    add(str_cat("pid ", verdict.pid));
  } else if (!verdict.pod.empty()) {
    add(str_cat("pod ", verdict.pod));
  }
  if (!verdict.host.empty()) add(str_cat("on ", verdict.host));
  std::string message = str_cat(role_name(verdict.role), "-", verdict.index);
  if (!who.empty()) message += str_cat(" (", who, ")");
  message += str_cat(" ", what_happened(verdict.kind));
  if (verdict.rank >= 0) message += str_cat(" at step ", verdict.step);
  const std::string exit = exit_text(verdict.exit_code, verdict.signal);
  std::string why = exit;
  if (verdict.kind != FaultKind::kDead || exit.empty()) {
    why = verdict.evidence;
    if (!exit.empty()) why += str_cat(" (", exit, ")");
  }
  return str_cat(message, ": ", why);
}

}  // namespace paceline::coordinator
