#pragma once

// A job as a history keeps it, and as the API tells of it once it is deleted (docs/dashboard-api.md). Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/cluster/kube/json.h"
#include "controller/history/record.h"

namespace paceline::dashboard {

history::Record record_of(const kube::Json& object, std::optional<WallTime> deleted, WallTime now);

// Its row, with `deleted`. A job that went on until then is told of as stopped.
kube::Json past_row(const history::Record& record);
// The object as it was last seen, with kDeletedAnnotation.
kube::Json past_object(const history::Record& record);
// GET JOB of it, as of a job that is there; no action is allowed.
std::string past_job_json(const history::Record& record);
// Why an action on such a job is refused.
std::string past_job_text();

}  // namespace paceline::dashboard
