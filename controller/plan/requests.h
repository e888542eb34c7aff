#pragma once

// Requests of people to a job that goes on (api/requests.h): a checkpoint now, a successor for a member. Each
// text of an annotation is answered once, in status.requests and by an event; the answer is written before
// anything is done. Pure.
//
//   checkpoint   the coordinator tells rank 0 by what the status says (save_request(), core_save.h), and
//                reports what came of it (JobReport::save_answer), within kCheckpointTimeout
//   replace      a handover like that of a slow member (stragglers.h), which uses none of its budget

#include <chrono>
#include <string>

#include "base/clock.h"
#include "controller/api/requests.h"
#include "controller/plan/observed.h"
#include "controller/plan/plan.h"

namespace paceline::plan {

// Reasons of events.
inline constexpr char kCheckpointRefused[] = "CheckpointRefused";
inline constexpr char kReplacementRefused[] = "ReplacementRefused";

// The step under way and an evaluation come first, and rank 0 may write for half of it
// (runtime/trainer/limits.h). A rank 0 of an earlier release never begins.
inline constexpr Duration kCheckpointTimeout = std::chrono::hours(1);

bool has_place(const api::TrainingJob& job, const api::Member& member);

// Why it can't be done now, in a sentence without a full stop; empty: it can.
std::string checkpoint_obstacle(const api::TrainingJob& job);
std::string replace_obstacle(const api::TrainingJob& job, const api::Member& member);

// The checkpoint that is asked for and not answered yet; empty: none is.
std::string save_request(const api::TrainingJob& job);

// REQUIRES: the plan's status is that of this pass.
void rule_requests(const Observed& observed, Plan& plan);

}  // namespace paceline::plan
