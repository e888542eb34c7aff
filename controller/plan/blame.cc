#include "controller/plan/blame.h"

#include <algorithm>
#include <csignal>
#include <tuple>

#include "base/process_end.h"
#include "base/text.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

constexpr std::size_t kMostVictims = 8;  // named one by one

// How its process ended, of a member whose end is known.
std::string end_of(std::optional<int> exit_code, std::optional<int> signal) {
  const char* const why =
      ", as it happens where a mapped file, of data or weights, is cut short or "
      "shared memory runs out";
  return str_cat(signal ? "was " : "", exit_text(exit_code, signal), signal == SIGBUS ? why : "");
}

// The step that a member was last heard at, by this coordinator or an earlier one; nothing where nobody knows
// it.
// Of an evaluator, nobody knows: it takes no steps.
std::optional<Step> last_step(const Observed& observed, Role role, int index) {
  if (role == Role::kEvaluator) return std::nullopt;
  if (observed.report) {
    for (const ReportedMember& member : observed.report->members) {
      if (member.role == role && member.index == index && !member.id.value.empty()) return member.step;
    }
  }
  const api::MemberStatus* last = last_status(observed, role, index);
  return last != nullptr && last->step > 0 ? std::optional(last->step) : std::nullopt;
}

const char* reason_of(const cluster::Pod& pod) {
  if (pod.reason == "StartError") return "MemberNotStarted";
  return pod.signal ? "MemberKilled" : "MemberExited";
}

const char* reason_of(CulpritKind kind) {
  switch (kind) {
    case CulpritKind::kMissing:
      return "MemberMissing";
    case CulpritKind::kDead:
      return "MemberDied";
    case CulpritKind::kFrozen:
      return "MemberFrozen";
    case CulpritKind::kFailed:
      return "MemberFailed";
    case CulpritKind::kUnreachable:
      return "MemberUnreachable";
    case CulpritKind::kDiverged:
      return "MemberDiverged";
  }
  return "MemberFailed";
}

const char* verb_of(CulpritKind kind) {
  switch (kind) {
    case CulpritKind::kMissing:
      return "never joined";
    case CulpritKind::kDead:
      return "died";
    case CulpritKind::kFrozen:
      return "stopped answering";
    case CulpritKind::kFailed:
      return "failed";
    case CulpritKind::kUnreachable:
      return "can't be reached by its peers";
    case CulpritKind::kDiverged:
      return "has other weights than its peers";
  }
  return "failed";
}

bool is_evicted(const Observed& observed, const cluster::Pod& pod) {
  return observed.job.spec.training && pod.exit_code == kExitEnded;
}

// The first that failed by itself. A signal that came within kSameMoment explains an exit with code 1.
const cluster::Pod* root_of(const Observed& observed, const std::vector<const cluster::Pod*>& failed) {
  const auto order = [&](const cluster::Pod* pod) {
    return std::tuple(is_evicted(observed, *pod), pod->finished.value_or(WallTime::max()), pod->spec.name);
  };
  const cluster::Pod* root = *std::ranges::min_element(failed, {}, order);
  if (root->exit_code != kExitFailed || !root->finished) return root;
  for (const cluster::Pod* pod : failed) {
    if (pod->signal && pod->finished && *pod->finished - *root->finished <= kSameMoment) return pod;
  }
  return root;
}

std::vector<std::string> victims_among(const std::vector<const cluster::Pod*>& failed,
                                       const cluster::Pod* root) {
  std::vector<std::string> victims;
  for (const cluster::Pod* pod : failed) {
    if (pod == root) continue;
    if (victims.size() == kMostVictims) {
      victims.push_back("...");
      break;
    }
    victims.push_back(str_cat(slot_name(pod->spec.role, pod->spec.index), " ", describe_end(*pod)));
  }
  return victims;
}

std::string at_step(std::optional<Step> step) {
  return step ? str_cat(" at step ", *step) : std::string();
}

// The cluster's words for a pod's end, as the coordinator is told them (reconcile/coordinators.cc).
std::string words_of(const cluster::Pod& pod) {
  return str_cat(pod.reason, pod.message.empty() ? "" : str_cat(": ", pod.message));
}

// The coordinator's evidence, without what is said of the pod's end already.
std::string evidence_beside_end(const Culprit& culprit, const cluster::Pod* pod) {
  std::string evidence = culprit.evidence;
  const std::string told = pod != nullptr && pod->ended() ? str_cat(": ", words_of(*pod)) : "";
  if (!told.empty() && evidence.ends_with(told)) evidence.resize(evidence.size() - told.size());
  return evidence;
}

// What happened to the culprit's process; empty where nobody knows.
std::string end_of_culprit(const Culprit& culprit, const cluster::Pod* pod) {
  if (pod != nullptr && pod->ended()) return describe_end(*pod);
  return end_of(culprit.exit_code, culprit.signal);
}

// Somebody deleted the pod, and the coordinator was faster to miss its member. Not one that never joined,
// whose pod may never have been there, nor one that said itself what became of it, or whose end was told.
bool fell_silent_deleted(const Observed& observed, const Culprit& culprit, const cluster::Pod* pod) {
  const bool silent = culprit.kind == CulpritKind::kDead || culprit.kind == CulpritKind::kFrozen ||
                      culprit.kind == CulpritKind::kUnreachable;
  return silent && !culprit.exit_code && !culprit.signal && pod == nullptr && !observed.pods_may_lag;
}

// Who failed by the same (a file that nobody has, a loss that all see) is no victim, and doesn't say it
// again.
void name_victims(const Culprit& culprit, Blame& blame) {
  const std::string by_the_same = str_cat(": ", culprit.evidence);
  std::string same;
  for (const std::string& victim : culprit.victims) {
    if (culprit.evidence.empty() || !victim.ends_with(by_the_same)) {
      blame.victims.push_back(victim);
      continue;
    }
    same += str_cat(same.empty() ? "; the same happened to " : ", ",
                    victim.substr(0, victim.size() - by_the_same.size()));
  }
  blame.message += same;
}

}  // namespace

std::string describe(Role role, int index, const std::string& pod, std::int64_t pid) {
  std::string inside;
  if (!pod.empty()) inside = str_cat("pod ", pod);
  if (pid > 0) inside += str_cat(inside.empty() ? "" : ", ", "pid ", pid);
  return inside.empty() ? slot_name(role, index) : str_cat(slot_name(role, index), " (", inside, ")");
}

std::string describe_end(const cluster::Pod& pod) {
  if (pod.reason == "StartError") return str_cat("could not be started: ", pod.message);
  // The cluster's own words, where they say more than that it ended.
  const bool plain = pod.reason.empty() || pod.reason == "Error" || pod.reason == "Completed";
  const std::string words = words_of(pod);
  if (pod.signal || pod.exit_code)
    return str_cat(end_of(pod.exit_code, pod.signal), plain ? "" : str_cat(" (", words, ")"));
  if (pod.ended()) return str_cat("ended: ", words);
  return pod.deleting ? str_cat("is being deleted", plain ? "" : str_cat(": ", words)) : std::string();
}

Blame blame_by_verdict(const Observed& observed) {
  const Culprit& culprit = *observed.report->culprit;
  const cluster::Pod* pod = find_pod(observed, culprit.role, culprit.index);
  const std::int64_t pid = culprit.pid > 0 ? culprit.pid : pod != nullptr ? pod->pid : 0;
  const std::string& name = culprit.pod.empty() && pod != nullptr ? pod->spec.name : culprit.pod;
  const std::string end = end_of_culprit(culprit, pod);
  const bool end_says_it = culprit.kind == CulpritKind::kDead && !end.empty();

  Blame blame;
  blame.reason = reason_of(culprit.kind);
  if (end_says_it) blame.reason = pod != nullptr && pod->ended() ? reason_of(*pod) : blame.reason;
  blame.message = str_cat(describe(culprit.role, culprit.index, name, pid), " ",
                          end_says_it ? end : verb_of(culprit.kind));
  const bool heard = !culprit.member.value.empty();
  if (culprit.kind != CulpritKind::kMissing)
    blame.message += at_step(heard ? culprit.step : last_step(observed, culprit.role, culprit.index));
  const std::string evidence = end_says_it ? evidence_beside_end(culprit, pod) : culprit.evidence;
  if (!evidence.empty()) blame.message += str_cat(": ", evidence);
  if (!end_says_it && !end.empty()) blame.message += str_cat("; its process ", end);
  if (pod != nullptr && pod->node_not_ready) blame.message += "; its node is not ready";
  if (pod != nullptr) blame.pod = *pod;
  blame.evicted = pod != nullptr && is_evicted(observed, *pod);
  blame.role = culprit.role;
  blame.index = culprit.index;
  blame.kind = culprit.kind;
  blame.exit_code = culprit.exit_code;
  blame.signal = culprit.signal;
  blame.gone = fell_silent_deleted(observed, culprit, pod);
  if (blame.gone) {
    blame.reason = "MemberDeleted";
    blame.message += "; its pod was deleted";
  }
  name_victims(culprit, blame);
  return blame;
}

Blame blame_pod(const Observed& observed, const cluster::Pod& pod) {
  const cluster::PodSpec& spec = pod.spec;
  Blame blame;
  blame.reason = reason_of(pod);
  blame.message = str_cat(describe(spec.role, spec.index, spec.name, pod.pid), " ", describe_end(pod),
                          at_step(last_step(observed, spec.role, spec.index)));
  blame.pod = pod;
  blame.evicted = is_evicted(observed, pod);
  blame.role = spec.role;
  blame.index = spec.index;
  blame.exit_code = pod.exit_code;
  blame.signal = pod.signal;
  return blame;
}

std::optional<Blame> blame_by_pods(const Observed& observed) {
  std::vector<const cluster::Pod*> failed;
  for (const cluster::Pod& pod : observed.pods) {
    if (has_failed(observed, pod)) failed.push_back(&pod);
  }
  if (failed.empty()) return std::nullopt;
  const cluster::Pod* root = root_of(observed, failed);
  Blame blame = blame_pod(observed, *root);
  blame.victims = victims_among(failed, root);
  return blame;
}

}  // namespace paceline::plan
