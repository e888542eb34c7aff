#include "cli/view/outline_text.h"

#include "base/clock.h"
#include "base/text.h"
#include "cli/view/gradients_text.h"
#include "cli/view/run_cells.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

namespace {

std::string pluralize(std::int64_t count, const char* one, const char* more) {
  return str_cat(with_commas(count), " ", count == 1 ? one : more);
}

bool waits_for_all(const api::Strategy& strategy) {
  return strategy.type == api::StrategyType::kAllReduce ||
         strategy.synchronization == api::Synchronization::kSynchronous;
}

std::string samples_line(const api::TrainingJob& job) {
  const std::int64_t batch = job.spec.training->global_batch_size, units = api::units_per_step(job);
  const char* const whose =
      units == api::trainer_count(job) ? " for each member" : " for each of the first gradients";
  return str_cat("each step: ", pluralize(batch, "sample", "samples"), ", ", with_commas(batch / units),
                 batch % units == 0 ? "" : " or one more", whose);
}

// What a worker waits for; nothing where all wait for all.
std::string mode_line(const api::TrainingJob& job) {
  const api::Strategy& strategy = job.spec.strategy;
  if (strategy.type == api::StrategyType::kAllReduce) return "";
  const api::ParameterServer& servers = strategy.parameter_server;
  switch (strategy.synchronization) {
    case api::Synchronization::kSynchronous:
      if (const auto gradients = step_gradients(job)) return step_text(*gradients);
      return "synchronous: a step is one update, of everybody's gradients";
    case api::Synchronization::kBoundedStaleness:
      return str_cat("bounded staleness: each gradient is an update; no member is more than ",
                     pluralize(servers.staleness, "step", "steps"), " ahead of the slowest");
    case api::Synchronization::kAsynchronous:
      break;
  }
  return str_cat("asynchronous: each gradient is an update as it comes; nobody waits",
                 servers.delay_compensation > 0 ? str_cat("; delay compensation ", servers.delay_compensation)
                                                : std::string());
}

std::string end_line(const api::Training& training) {
  const std::string length =
      training.steps ? pluralize(*training.steps, "step", "steps")
                     : str_cat(training.epochs.value_or(0), training.epochs == 1.0 ? " epoch" : " epochs");
  const std::string target = training.target ? target_text(training) : "";
  return target.empty() ? str_cat("ends after ", length)
                        : str_cat("ends when ", target, ", else after ", length);
}

std::string checkpoint_line(const api::Checkpoint& checkpoint) {
  std::string when;
  if (checkpoint.every_steps > 0) when = pluralize(checkpoint.every_steps, "step", "steps");
  if (checkpoint.every_seconds > 0) {
    when += str_cat(when.empty() ? "" : " and every ",
                    format_duration(std::chrono::duration_cast<Duration>(
                        std::chrono::duration<double>(checkpoint.every_seconds))));
  }
  if (when.empty()) return "";
  return str_cat("a checkpoint every ", when, ", the newest ", checkpoint.keep,
                 checkpoint.keep == 1 ? " is kept" : " are kept");
}

}  // namespace

std::string preflight_text(const api::TrainingJob& job) {
  const auto& preflight = job.spec.preflight;
  if (!preflight) return "";
  const bool excludes = preflight->action == api::PreflightAction::kExclude;
  return str_cat("members are tested before the first step; one that takes more than ", preflight->factor,
                 " times the others' median is ",
                 excludes ? "replaced within the budget of stragglers" : "told of, and trains");
}

std::string partial_steps_text(const api::TrainingJob& job) {
  constexpr double kPercent = 100;
  const double rate = job.spec.strategy.all_reduce.max_drop_rate;
  if (!(rate > 0)) return "";
  return str_cat("a member that is out of time leaves out the rest of its samples of a step: at most ",
                 rate * kPercent, " % of all");
}

std::string unsaved_text(const api::TrainingJob& job) {
  const api::Checkpoint& checkpoint = job.spec.checkpoint;
  if (!job.spec.training || checkpoint.every_steps > 0 || checkpoint.every_seconds > 0) return "";
  return "no checkpoint is saved while it trains (spec.checkpoint.everySteps, everySeconds): where all "
         "members are killed at once, all steps are lost";
}

std::string members_text(const api::TrainingJob& job) {
  const std::int64_t trainers = api::trainer_count(job), servers = api::member_count(job) - trainers;
  std::string text = pluralize(trainers, "member", "members that train");
  if (trainers > 1) text += waits_for_all(job.spec.strategy) ? " together" : " side by side";
  if (servers > 0) {
    text +=
        str_cat(", ", pluralize(servers, "server that holds the weights", "servers that hold the weights"));
  }
  return text;
}

std::vector<std::string> outline_lines(const api::TrainingJob& job) {
  std::vector<std::string> lines = {samples_line(job)};
  const std::string evaluator =
      job.spec.replica_specs.evaluator ? "an evaluator looks at each checkpoint, beside the training" : "";
  for (const std::string& line :
       {mode_line(job), partial_steps_text(job), preflight_text(job), end_line(*job.spec.training),
        checkpoint_line(job.spec.checkpoint), unsaved_text(job), evaluator}) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace paceline::cli
