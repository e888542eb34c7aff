#pragma once

// Plans as text for people. Pure.

#include <string>

#include "controller/plan/plan.h"

namespace paceline::plan {

// One plan: a line per action with its reason, the status, and when to look again. Secrets are left out.
std::string explain(const Plan& plan);

// What would be done for a job, from nothing to running, without doing it: the plans for a model cluster in
// which all goes well, one after the other. `initial` has the job, limits and now; its pods are where the
// story starts (usually none).
std::string explain_job(const Observed& initial);

}  // namespace paceline::plan
