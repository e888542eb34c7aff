#pragma once

// The planner's rules. Each looks at what is observed and adds to the plan; plan.cc says in which order they
// run and which of them ends the story. Pure.

#include <cstdint>
#include <string>

#include "controller/plan/plan.h"
#include "controller/plan/pods.h"

namespace paceline::plan {

// True: the job is not to run (any more); later rules must not create pods or end it otherwise.
bool rule_stop(const Observed& observed, Plan& plan);
bool rule_finished(const Observed& observed, Plan& plan);
bool rule_suspend(const Observed& observed, Plan& plan);
bool rule_deadline(const Observed& observed, Plan& plan);
bool rule_resize(const Observed& observed, Plan& plan);
// What has come to light of a restart that is charged for now. May run whatever else is decided.
void settle(const Observed& whole, Plan& plan);
// kAwaited: a member has failed, and what that comes to is not known yet: the ring is left as it is.
enum class Finding : std::uint8_t { kNone, kAwaited, kDecided };
Finding rule_provisional(const Observed& whole, Plan& plan);
Finding rule_failure(const Observed& observed, Plan& plan);

// The rules see the present attempt only; `whole` has what is left of earlier ones too.
void rule_lost(const Observed& observed, Plan& plan);
void rule_create_pods(const Observed& observed, const Observed& whole, Plan& plan);
void create_auxiliary(const Observed& observed, const Observed& whole, Plan& plan);  // no members
// Tells of auxiliary pods that have failed and are not started again; rule_auxiliary() does it, too.
void report_lost_auxiliary(const Observed& observed, Plan& plan);
void rule_auxiliary(const Observed& observed, Plan& plan);
// The next attempt, where one has failed whose end is all members' (restartScope: Job).
bool restart_by_auxiliary(const Observed& observed, Plan& plan);
void rule_success(const Observed& observed, Plan& plan);
// These run always, last.
void rule_stale_pods(const Observed& whole, Plan& plan);
void rule_trouble(const Observed& observed, Plan& plan);
void rule_status(const Observed& observed, const Observed& whole, Plan& plan);

// ---- what several rules do

// Of the attempt that ends: its checkpoints, where they lie in its pods ("; its checkpoints ..."). Else
// empty.
std::string what_is_lost(const Observed& observed);

// Reasons of events about checkpoints.
inline constexpr char kCheckpointSaved[] = "CheckpointSaved", kCheckpointNotSaved[] = "CheckpointNotSaved";

// Whether training is over and well: the coordinator or the leader says so, or, without one, the leader's
// process ended well.
bool training_finished(const Observed& observed);
// The former alone.
bool reported_finished(const Observed& observed);
// The progress of a training that is over and well. The controller that was told of the last steps may be
// gone; without a target they were all taken.
api::Progress finished(const api::TrainingJob& job, api::Progress known);

// status.members[].phase: of one that the others go on without, and of one that has said that its work is
// done and whose pod has not ended yet.
inline constexpr char kLostPhase[] = "Lost";
inline constexpr char kFinishedPhase[] = "Finished";
// Whether the status keeps that this member's work is done.
bool says_finished(const api::MemberStatus& member);
// Whether the work in this place is done, while others may still be at theirs: that its pod is deleted or
// disrupted then is no loss, and no reason for another one. Its pod ended well (not merely because it was
// deleted or disrupted), or its coordinator says so; the status keeps either, since the pod may be gone and
// the coordinator a new one. Not of one whose process crashed by itself, whatever was said before. Never of a
// member that serves: it holds what the leader saves.
bool has_finished(const Observed& observed, Role role, int index);
// A member whose pod failed, though nobody deleted it, and whose work was not done.
bool has_failed(const Observed& observed, const cluster::Pod& pod);
// Likewise of an auxiliary pod: it failed by itself, though somebody deleted the pod since.
bool has_failed_auxiliary(const Observed& observed, const cluster::Pod& pod);
// What the status last said of the pod that this place wants; null: nothing.
const api::MemberStatus* last_status(const Observed& observed, Role role, int index);
// Whether the coordinator has a view whose members train: it will say who is missed in it.
bool view_runs(const Observed& observed);
// The same, or it gathers the members of a view that trained before it began.
bool view_goes_on(const Observed& observed);
// Whether a member in another place is there yet.
bool others_live(const Observed& observed, Role role, int index);
// Whether the member in this place is gone, and the others go on without it.
bool is_lost(const Observed& observed, Role role, int index);
// Whether the others may go on without the member in this place (a ring, elastic.h; or a job with servers
// where not every update needs everybody): its coordinator says whether they do, JobReport::lost.
bool may_be_spare(const Observed& observed, const Slot& slot);
// A member whose end means something: not one that is lost, and no auxiliary one.
bool is_needed(const Observed& observed, const cluster::Pod& pod);

// How long a pod has between SIGTERM and SIGKILL: `grace`, but the leader longer if it trains and is not the
// one at fault, or only out of its peers' reach: it saves what is not saved yet. What the template
// says of this wins for the leader, and where pods end in order (no failure made them). Zero stays zero.
Duration grace_of(const Observed& observed, const cluster::Pod& pod, Duration grace);

// Every pod that still runs and is not being deleted yet (or every one that runs, where the grace is zero) is
// deleted.
void delete_running_pods(const Observed& observed, Duration grace, const std::string& reason, Plan& plan);

// Ends the job: the status' phase, reason and message, conditions, completion time, and an event; no fault.
void end_job(const Observed& observed, api::Phase phase, const std::string& reason,
             const std::string& message, Plan& plan);

// What is left of a job that has ended goes as cleanPodPolicy says.
void clean_pods(const Observed& observed, Duration grace, const std::string& reason, Plan& plan);

// "Created", "Running", ...: the time of its last transition stays where the value does.
void set_condition(const Observed& observed, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, api::Status& status);

// Somebody else has written Unknown into conditions that only we know: by the phase they are so or not so.
// What no phase tells (CheckpointFailed, InvalidSpec) is not so until it is found again.
void note_unknown(const Observed& observed, api::Status& status);

// Moves the phase on, with its condition and an event: from Pending over Starting to Running, between these
// and Restarting or Suspended, and from each of them to an end, which is for good. Of Running, Restarting,
// Suspended, Succeeded and Failed at most one condition is true.
void enter_phase(const Observed& observed, api::Phase phase, const std::string& reason,
                 const std::string& message, Plan& plan);

void record_event(const Observed& observed, bool warning, const std::string& reason,
                  const std::string& message, const std::string& why, Plan& plan);

// Look again after `wait`, or earlier where somebody else wants that.
void requeue(Duration wait, Plan& plan);

}  // namespace paceline::plan
