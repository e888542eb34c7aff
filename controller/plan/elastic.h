#pragma once

// Rings that go on without a lost member: who may be lost, and how another one takes its place. Pure.
//
// The coordinator says who is lost, JobReport::lost; the planner makes the pod that comes after it. Pods of
// one place have rising numbers (status.restarts.replacements), which are written before the pod is made, and
// members that come back from an earlier one are refused. So the next one need not wait for its end.

#include "controller/api/types.h"
#include "controller/plan/observed.h"
#include "controller/plan/plan.h"

namespace paceline::plan {

// Reasons: of the status, and of events.
inline constexpr char kMemberReplaced[] = "MemberReplaced";
inline constexpr char kTooFewMembers[] = "TooFewMembers";  // the ring waits until minReplicas are there

// An all-reduce of the native trainer whose members may start again one by one, or whose size may change.
bool is_elastic(const api::TrainingJob& job);
// Likewise, and `role` is one of those who train in it.
bool is_elastic(const api::TrainingJob& job, Role role);

// Whether another one takes a lost member's place, while the ring goes on.
bool has_successor(const api::TrainingJob& job, Role role);
// Why it is not so, in a sentence without a full stop; empty: it is.
std::string successor_obstacle(const api::TrainingJob& job, Role role);
// Likewise, of a role that trains in a ring: what to set.
std::string no_successor_text(Role role);

// How many must be left, with those that stand by, where lost members are not replaced; nothing: all.
std::optional<int> least_trainers(const api::TrainingJob& job);
// How many a view has at least: all where the ring is not elastic.
int min_trainers(const api::TrainingJob& job);

// Replicas were edited: nobody starts again. The places that go have the next number, so that their pods are
// none of the job's any more; the coordinator lets their members leave in order. REQUIRES: is_elastic().
void resize(const Observed& observed, Plan& plan);

// It can't read its data, and was started kDataTries times in a row already: another pod would meet the same
// there, and minReplicas are left without it. So nobody takes its place in this attempt, and the budget of
// the others is not used up for it.
inline constexpr std::int64_t kDataTries = 3;
bool is_given_up(const Observed& observed, const LostMember& lost);

// A process that has ended is known to by its pod a moment later, and why: until then, and for
// Limits::exit_grace at most, nothing is said of the loss.
bool awaits_end(const Observed& observed, const LostMember& lost);
bool awaits_end(const Observed& observed, const LostMember& lost, Plan& plan);  // and looks again then

// The lost member's pod is followed by another one, or the job fails, by its role's policy and by
// backoffLimit. Nothing, where that is done already.
void replace_lost(const Observed& observed, const LostMember& lost, Plan& plan);

// The node of the member that fell silent last, as long as nobody knows that its pod has ended; else empty.
// It may be dead, which Kubernetes knows half a minute later: a pod that is placed there meanwhile waits for
// minutes. So pods that are made until then avoid it.
std::string silent_host(const Observed& whole);

// A pod that no other node has room for waits in vain once its node is known to be well: another one, which
// avoids nothing, takes its place.
void rule_avoidance(const Observed& observed, const Observed& whole, Plan& plan);

}  // namespace paceline::plan
