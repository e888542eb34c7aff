#pragma once

// What of a status is progress: it changes with every heartbeat and is written now and then only. Pure.

#include "controller/api/types.h"

namespace paceline::reconcile {

// Equal but for progress. While a job starts, its members' coming up is. Who has finished, failed or was lost
// is none: another controller must know it, whatever becomes of the pod by then.
bool same_but_for_progress(const api::Status& before, const api::Status& after);

}  // namespace paceline::reconcile
