#pragma once

// The coordinator's report as the planner reads it. Pure.

#include "controller/coordinator/report.h"
#include "controller/plan/observed.h"

namespace paceline::reconcile {

plan::JobReport to_plan(const coordinator::Report& report);

}  // namespace paceline::reconcile
