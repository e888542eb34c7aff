#pragma once

// TrainingJob to YAML, normalised: every field that applies, defaults filled in, in the order of
// docs/trainingjob.md; status is left out. parse_training_job(print_yaml(job)) is the same job, and printing
// that gives the same text. Pure.

#include <string>

#include "controller/api/types.h"

namespace paceline::api {

std::string print_yaml(const TrainingJob& job);

}  // namespace paceline::api
