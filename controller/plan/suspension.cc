#include "controller/plan/suspension.h"

#include <algorithm>

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/api/checkpoint_step.h"

namespace paceline::plan {

Suspension suspension_of(const Observed& observed, const JobReport& report, const api::Status& status) {
  Suspension suspension;
  if (!status.last_checkpoint.empty()) suspension.saved = api::checkpoint_step(status.last_checkpoint);
  suspension.step = std::max(status.progress.step, suspension.saved.value_or(0));  // none may have begun yet
  suspension.keeps_checkpoints = observed.keeps_checkpoints;
  if (report.last_save && !report.last_save->error.empty()) suspension.failed = report.last_save;
  return suspension;
}

std::string text_of(const Suspension& suspension) {
  std::string text = str_cat("suspended at step ", suspension.step);
  if (suspension.failed)
    text += str_cat("; step ", suspension.failed->step, " could not be saved: ", suspension.failed->error);
  if (suspension.behind() <= 0) return text;
  if (!suspension.keeps_checkpoints)
    return str_cat(text, "; its checkpoints go with its pods: training begins anew at step 0");
  text += suspension.saved ? str_cat("; it will go on from the checkpoint of step ", *suspension.saved, ", ")
                           : std::string("; it has no checkpoint, and will begin anew at step 0, ");
  return str_cat(text, pluralize(suspension.behind(), "step", "steps"), " behind");
}

}  // namespace paceline::plan
