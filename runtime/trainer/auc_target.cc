#include "runtime/trainer/auc_target.h"

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "runtime/data/auc.h"

namespace paceline::trainer {

namespace {

constexpr double kDeviations = 4;  // of one in 30,000 sets of samples

}  // namespace

absl::StatusOr<std::string> check_auc_target(double target, Evaluator& evaluator, const data::Datasets& data,
                                             const std::function<absl::Status()>& go_on) {
  if (!evaluator.scores()) {
    return absl::InvalidArgumentError(
        "target.auc: the model gives no single score that samples could be ranked by (its loss is not "
        "sigmoid_cross_entropy): give target.accuracy or target.loss");
  }
  PL_ASSIGN_OR_RETURN(const bool both, evaluator.has_both_labels(go_on));
  const std::int64_t samples = data.test->size();
  if (!both) {
    return absl::InvalidArgumentError(str_cat(
        "target.auc: the ", samples,
        " held-out samples have one label only, so that there is nothing to rank: hold more samples out"));
  }
  if (data.best_auc == nullptr) return std::string();
  const data::ExpectedAuc best = data.best_auc();
  if (target <= best.value) return std::string();
  const double positives = best.positives * static_cast<double>(samples);
  const double chance =
      kDeviations * (best.standard_error +
                     data::auc_deviation(best.value, positives, static_cast<double>(samples) - positives));
  const std::string found = absl::StrFormat(
      "target.auc %g is above %.4f, the best that any model can do on this data", target, best.value);
  if (target <= best.value + chance) {
    return absl::StrFormat("%s: only the choice of the %d held-out samples might bring it there", found,
                           samples);
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s (Bayes-optimal; on %d held-out samples chance adds at most %.4f): give less than that", found,
      samples, chance));
}

}  // namespace paceline::trainer
