#include "cli/view/run_cells.h"

#include "base/text.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

namespace {

// A program of one's own tells its steps, and not how many there will be.
std::string step_cell(const api::Progress& progress) {
  if (progress.total_steps > 0) return str_cat(progress.step, "/", progress.total_steps);
  return progress.step > 0 ? str_cat(progress.step) : "-";
}

}  // namespace

std::vector<std::string> progress_cells(const RunState& state) {
  return {step_cell(state.progress), state.progress.loss ? loss_text(*state.progress.loss) : "-",
          state.progress.test_auc        ? "AUC " + fixed(*state.progress.test_auc, 4)
          : state.progress.test_accuracy ? fixed(*state.progress.test_accuracy * 100, 2) + " %"
                                         : "-",
          state.progress.samples_per_second >= 1
              ? with_commas(static_cast<std::int64_t>(state.progress.samples_per_second))
              : "-"};
}

std::string target_text(const api::Training& training) {
  if (!training.target) return "";
  if (training.target->accuracy) return str_cat("accuracy >= ", *training.target->accuracy);
  if (training.target->auc) return str_cat("auc >= ", *training.target->auc);
  return str_cat("loss <= ", training.target->loss.value_or(0));
}

}  // namespace paceline::cli
