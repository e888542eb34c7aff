#pragma once

// The coordinator's report as the planner reads it. Pure.

#include "controller/coordinator/report.h"
#include "controller/plan/observed.h"

namespace paceline::reconcile {

plan::JobReport to_plan(const coordinator::Report& report);

// How far training is. Of the loss and the evaluation, what nobody has told yet stays.
void apply_progress(const coordinator::Report& report, api::Progress& progress);

}  // namespace paceline::reconcile
