#include "runtime/trainer/plan.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "runtime/data/ledger.h"

namespace paceline::trainer {

namespace {

absl::Status invalid(const std::string& what) {
  return absl::InvalidArgumentError(what);
}

Step evaluation_interval(const v1::TrainingSpec& spec, std::int64_t train_samples) {
  if (spec.evaluation().every_steps() > 0) return spec.evaluation().every_steps();
  if (!(spec.evaluation().every_epochs() > 0)) return 0;
  const double steps = spec.evaluation().every_epochs() * static_cast<double>(train_samples) /
                       static_cast<double>(spec.global_batch_size());
  return std::max<Step>(1, std::llround(std::min(steps, 1e15)));
}

absl::StatusOr<Target> target_of(const v1::TargetSpec& spec, bool with_servers) {
  if (spec.metric() == "accuracy") return Target{TargetMetric::kAccuracy, spec.value()};
  if (spec.metric() == "loss") return Target{TargetMetric::kLoss, spec.value()};
  if (spec.metric() == "auc") {
    if (with_servers) return Target{TargetMetric::kAuc, spec.value()};
    return invalid(
        "target.auc: the members of an all-reduce evaluate a part each, and nobody ranks all samples: "
        "give strategy.type: ParameterServer, or another target");
  }
  return invalid(str_cat("target: '", spec.metric(), "'; allowed: accuracy, loss, auc"));
}

}  // namespace

absl::StatusOr<StepPlan> make_plan(const v1::TrainingSpec& spec, std::int64_t train_samples,
                                   std::int64_t test_samples) {
  if (train_samples < 1) return invalid("data.train has no samples");
  if (spec.global_batch_size() < 1) {
    return invalid(str_cat("globalBatchSize ", spec.global_batch_size(), "; allowed: at least 1"));
  }
  if (spec.global_batch_size() > train_samples) {
    return invalid(str_cat(
        "spec.training.globalBatchSize ", spec.global_batch_size(), " is more than the training set's ",
        train_samples, " samples: a step would take some of them twice; allowed: at most ", train_samples));
  }
  StepPlan plan;
  plan.total_steps = spec.steps();
  if (spec.epochs() > 0) {
    const data::Ledger ledger({spec.seed(), train_samples, spec.global_batch_size()});
    plan.total_steps = ledger.steps_for_epochs(spec.epochs());
  }
  if (plan.total_steps < 1) return invalid("the job has neither steps nor epochs above 0");
  plan.evaluates = test_samples > 0;
  plan.evaluate_every = evaluation_interval(spec, train_samples);
  if (spec.has_target()) {
    if (!plan.evaluates) {
      return invalid(spec.data().format() == v1::DataSpec::CUSTOM
                         ? str_cat("target needs held-out samples, and the custom data set '",
                                   spec.data().custom().name(),
                                   "' returns no test set: return one, or give data.testFraction above 0")
                         : "target needs held-out samples: give data.test, or data.testFraction above 0");
    }
    PL_ASSIGN_OR_RETURN(plan.target, target_of(spec.target(), spec.has_parameter_server()));
  }
  plan.saves = !spec.checkpoint().directory().empty();
  plan.checkpoint_every = spec.checkpoint().every_steps();
  plan.checkpoint_time = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(spec.checkpoint().every_seconds(), 1e9)));
  return plan;
}

std::int64_t pass_rows(const v1::TrainingSpec& spec, std::int64_t rows, std::int64_t trainers) {
  if (spec.micro_batch_size() > 0) return std::min(spec.micro_batch_size(), rows);
  if (trainers <= 0) return rows;
  return std::min(rows, (spec.global_batch_size() + trainers - 1) / trainers);
}

std::int64_t samples_of_steps(const v1::TrainingSpec& spec, Step steps) {
  const std::int64_t samples = steps * spec.global_batch_size();
  const std::int64_t parts = spec.parameter_server().units_per_step();
  const std::int64_t counted = spec.parameter_server().gradients_per_step();
  if (counted >= parts) return samples;
  return samples / parts * counted + samples % parts * counted / parts;
}

}  // namespace paceline::trainer
