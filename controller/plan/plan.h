#pragma once

// plan(): what to do for a job, given what is. Pure and total: the same Observed gives the same Plan, and
// every action carries its reason, which logs, events and `paceline explain` show.
//
// Rules, in order (one file each); the first that lets the members end keeps the later ones from running:
//   the end of a handover from a slow member to its successor (stragglers.h), alone -> then
//   stop (the job is deleted, or its user stops it) -> finished (clean-up, ttl) -> suspend ->
//   deadline -> resize -> provisional (the cause of the last restart) -> failure (end, or restart) -> lost
//   (members that the others go on without) -> create pods -> auxiliary (servers, evaluators) -> success;
// while a failure's verdict is waited for, of the later ones the auxiliary rule only; then always:
// stale pods (of earlier attempts) -> trouble (why pods don't run) -> status -> requests (of people,
// requests.h). A job that is managed by somebody else (runPolicy.managedBy) gets an empty plan.
//
// A restart is an attempt: all members of the ring leave, and when none of them lives any more, pods with the
// next attempt's names take their places and resume from the newest checkpoint. The attempt's number and the
// restart's cause are written to the status before its first pod is created, so nothing is counted twice
// or forgotten when the controller dies in between.
//
// Never: two live pods for one role and index, but in a ring, which fences off the earlier one (elastic.h); a
// pod of a job that is suspended, stopped, deleted or finished; a counter that goes back. A plan made from a
// stale pod list does no harm: names are deterministic, so a second creation is refused by the cluster, and
// deletions name the uid. REQUIRES of the observer: job and pods are at least as new as what it, or a leader
// before it, wrote. Cost: O(pods x members) comparisons, as lists are searched from their beginning.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "controller/api/types.h"
#include "controller/cluster/cluster.h"
#include "controller/plan/observed.h"

namespace paceline::plan {

struct CreatePod {
  cluster::PodSpec spec;
  std::string reason;
  bool operator==(const CreatePod&) const = default;
};
struct DeletePod {
  std::string ns, name, uid;
  Duration grace{};
  std::string reason;
  bool operator==(const DeletePod&) const = default;
};
// Reasons of events about auxiliary pods, which stand outside the ring. Replaced: it ended, and another one
// comes; a warning where it failed. Lost: it failed, and none comes.
inline constexpr const char* kEvaluatorReplaced = "EvaluatorReplaced";
inline constexpr const char* kEvaluatorLost = "EvaluatorLost";
inline constexpr const char* kServerReplaced = "ServerReplaced";  // of a job whose own program trains
inline constexpr const char* kServerLost = "ServerLost";

struct RecordEvent {
  cluster::Event event;
  std::string reason;
  bool operator==(const RecordEvent&) const = default;
};
// The job itself, ttlSecondsAfterFinished after its end.
struct DeleteJob {
  std::string ns, name, uid;
  std::string reason;
  bool operator==(const DeleteJob&) const = default;
};
using Action = std::variant<CreatePod, DeletePod, RecordEvent, DeleteJob>;

struct StopMembers {
  std::string why;
  bool another_follows = false;  // another attempt, for which an evaluator stays
  bool operator==(const StopMembers&) const = default;
};

struct AbsentMember {
  Role role = Role::kWorker;
  int index = 0;
  std::string pod;
  api::Observation seen;
  bool operator==(const AbsentMember&) const = default;
};

struct Plan {
  std::vector<Action> actions;  // in this order
  // Set where members end in order. Their coordinator tells them before their pods are deleted, so that
  // nobody's end is taken for a failure, and hears what they save as they leave.
  std::optional<StopMembers> stop_members;
  // Their pods run, but they have not joined a coordinator that gathers the members of an earlier one's view,
  // and the others may go on without them: whether they do is for it to say.
  std::vector<AbsentMember> absent;
  // Pods of members that somebody deleted, or that a lost node runs: their coordinator may not have heard of
  // it.
  std::vector<std::string> gone;
  // Rank 0's work was done under an earlier coordinator, and its pod is gone: the present one, which has
  // heard nothing of that, tells those who come back to it that training is over.
  bool leader_finished = false;
  api::Status status;         // to be written if it differs from the observed one
  std::string status_reason;  // why the phase is what it is
  // Set when this plan lets the job fail or start again: the pod whose last log lines belong into the error.
  std::optional<cluster::Pod> failed_pod;
  // Look again after this long even if nothing changes; zero: at once; nothing: only when something changes.
  std::optional<Duration> requeue_after;
  bool done = false;  // the job has ended and nothing of it is left running
};

Plan plan(const Observed& observed);

// True for Succeeded and Failed.
bool is_terminal(api::Phase phase);

}  // namespace paceline::plan
