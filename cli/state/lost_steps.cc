#include "cli/state/lost_steps.h"

#include "base/pluralize.h"
#include "base/text.h"

namespace paceline::cli {

std::string lost_steps_text(Step step, Step saved) {
  if (saved >= step) return "";
  if (saved == 0) return "nothing was saved: all its steps are lost";
  return str_cat("step ", saved, " was saved: ", pluralize(step - saved, "step is", "steps are"), " lost");
}

}  // namespace paceline::cli
