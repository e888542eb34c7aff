#include "cli/view/run_cells.h"

#include "base/text.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

std::vector<std::string> progress_cells(const RunState& state) {
  return {
      state.total_steps > 0 ? str_cat(state.step, "/", state.total_steps) : "-",
      state.loss ? loss_text(*state.loss) : "-",
      state.auc        ? "AUC " + fixed(*state.auc, 4)
      : state.accuracy ? fixed(*state.accuracy * 100, 2) + " %"
                       : "-",
      state.samples_per_second >= 1 ? with_commas(static_cast<std::int64_t>(state.samples_per_second)) : "-"};
}

std::string target_text(const api::Training& training) {
  if (!training.target) return "";
  if (training.target->accuracy) return str_cat("accuracy >= ", *training.target->accuracy);
  if (training.target->auc) return str_cat("auc >= ", *training.target->auc);
  return str_cat("loss <= ", training.target->loss.value_or(0));
}

}  // namespace paceline::cli
