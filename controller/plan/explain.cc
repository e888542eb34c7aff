#include "controller/plan/explain.h"

#include <algorithm>

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/plan/simulate.h"

namespace paceline::plan {

namespace {

constexpr int kMostRounds = 64;

bool is_secret(std::string_view name) {
  return name.find("TOKEN") != std::string_view::npos || name.find("SECRET") != std::string_view::npos ||
         name.find("PASSWORD") != std::string_view::npos || name.find("KEY") != std::string_view::npos;
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += str_cat(line.empty() ? "" : " ", word);
  return line;
}

std::string coordinator_of(const Observed& world) {
  if (!world.report) return "no coordinator";
  return str_cat("coordinator ", job_state_name(world.report->state));
}

std::string text_of(const Action& action) {
  if (const auto* create = std::get_if<CreatePod>(&action)) {
    std::string text = str_cat("  create pod ", create->spec.name, "  (", create->reason, ")\n");
    text += str_cat(
        "      command: ", create->spec.command.empty() ? "the image's own" : joined(create->spec.command),
        "\n      threads: ", create->spec.threads, "\n");
    for (const auto& [name, value] : create->spec.env) {
      text += str_cat("      ", name, "=", is_secret(name) ? "***" : value, "\n");
    }
    return text;
  }
  if (const auto* remove = std::get_if<DeletePod>(&action)) {
    return str_cat("  delete pod ", remove->name, ", SIGKILL after ", format_duration(remove->grace), "  (",
                   remove->reason, ")\n");
  }
  if (const auto* remove = std::get_if<DeleteJob>(&action))
    return str_cat("  delete job ", remove->name, "  (", remove->reason, ")\n");
  const auto& record = std::get<RecordEvent>(action);
  return str_cat("  record ", record.event.warning ? "warning " : "event ", record.event.reason, ": ",
                 record.event.message, "  (", record.reason, ")\n");
}

}  // namespace

std::string explain(const Plan& plan) {
  std::string text;
  for (const Action& action : plan.actions) text += text_of(action);
  if (plan.actions.empty()) text += "  nothing to do\n";
  text += str_cat("  status: ", api::name(plan.status.phase));
  if (!plan.status_reason.empty()) text += str_cat(": ", plan.status_reason);
  text += "\n";
  if (plan.requeue_after) {
    text += plan.requeue_after == Duration::zero()
                ? std::string("  look again at once\n")
                : str_cat("  look again after ", format_duration(*plan.requeue_after),
                          " or when something changes\n");
  }
  return text;
}

std::string explain_job(const Observed& initial) {
  Observed world = initial;
  if (!world.report && world.job.spec.training) world.report = JobReport{};
  std::string text;
  int told = 0;  // plans that change nothing are not shown
  for (int round = 0; round < kMostRounds; ++round) {
    const Plan next = plan(world);
    const bool news = !next.actions.empty() || next.status.phase != world.job.status.phase;
    if (news) {
      text += str_cat(text.empty() ? "" : "\n", "Plan ", ++told, ": ",
                      pluralize(world.pods.size(), "pod", "pods"), ", ", coordinator_of(world), "\n",
                      explain(next));
    }
    const bool settled = !news && (!world.report || world.report->state == JobState::kRunning);
    if (settled || next.done) break;
    apply(next, world);
    advance(world);
  }
  return text;
}

}  // namespace paceline::plan
