#pragma once

// Slow members of a ring are replaced where the job asks for that (spec.stragglers.action: Replace). Pure;
// docs/stragglers.md tells when.
//
// The successor comes first: a pod with the next number of the place, on another node, which joins as a
// newcomer while the slow member trains on. The coordinator hands the place over at the end of a step
// (core.h, Handover), to the successor or to a member that stands by, so that no view is smaller for it. Then
// the place has the successor's number, and the slow pod goes as one of an earlier number. What was decided,
// and what came of it, stands in status.stragglerReplacements, before the pod is made; one is under way at a
// time.

#include <optional>
#include <string>
#include <vector>

#include "controller/api/requests.h"
#include "controller/plan/observed.h"
#include "controller/plan/plan.h"

namespace paceline::plan {

// Reasons of events.
inline constexpr char kStragglerReplacing[] = "StragglerReplacing";
inline constexpr char kStragglerRebalanced[] = "StragglerRebalanced";  // shares of the batch are others
inline constexpr char kStragglerReplaced[] = "StragglerReplaced";
inline constexpr char kStragglerKept[] = "StragglerKept";  // it was to be replaced, and was not
inline constexpr char kPreflightPassed[] = "PreflightPassed";
inline constexpr char kPreflightFailed[] = "PreflightFailed";
inline constexpr char kStragglerAsSlow[] = "StragglerAsSlow";  // its successor is slow, too
// Reasons of a replacement by request: it begins; another member has its rank; it stays.
inline constexpr char kMemberReplacing[] = "MemberReplacing";
inline constexpr char kMemberHandedOver[] = "MemberHandedOver";
inline constexpr char kMemberKept[] = "MemberKept";
// A replacement of either kind is over without its successor, and the member is not kept either: it was lost,
// or the job has ended, is suspended, or is smaller now.
inline constexpr char kReplacementOver[] = "ReplacementOver";

// A successor that has not taken over by then is given up.
inline constexpr Duration kHandoverTimeout = std::chrono::minutes(10);

// The place that is to be handed over, and its successor's number. Nothing: none is.
std::optional<Incarnation> handover_of(const api::TrainingJob& job);

// Successors that are not to take over any more, whose places have not taken later numbers since.
std::vector<Incarnation> given_up(const api::TrainingJob& job);

// How many slow members may be replaced now, within the window's budget.
int replacements_left(const api::TrainingJob& job, WallTime now);

// A member that the coordinator has excluded before the first step, and whose next pod is decided on: it
// counts as a slow one that was replaced, so that its node is avoided, and the budget is used.
void note_excluded(const Observed& observed, const api::Fault& fault, Plan& plan);

// The coordinator's word of the check before the first step is told once, with the nodes that the cluster
// knows.
void note_preflight(const Observed& observed, Plan& plan);

// Nodes of slow members that were replaced within the window: new pods had better not come there.
std::vector<std::string> slow_hosts(const api::TrainingJob& job, WallTime now);

// Ends the handover that is under way where something has come of it. The coordinator may have carried it out
// as it was given up: then it was not given up. True: the status says it now, and all else can wait for
// the next pass.
bool settle_handover(const Observed& whole, Plan& plan);

// The successor's pod, where it is not there.
void create_successor(const Observed& observed, const Observed& whole, Plan& plan);

// Begins to replace this member by request, and says so. The budget for slow members is not used, and the
// node is avoided by the successor alone. REQUIRES: replace_obstacle() is empty; `pod` is the member's.
std::string begin_requested_handover(const Observed& observed, const api::Member& member,
                                     const cluster::Pod& pod, Plan& plan);

// Says of each straggler in the status what is done about it, and why; and begins that. REQUIRES: the status
// has those of the report.
void act_on_stragglers(const Observed& observed, Plan& plan);

}  // namespace paceline::plan
