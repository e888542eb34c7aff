#include "cli/run/run_state_builder.h"

#include <algorithm>

#include "base/text.h"
#include "cli/state/stopped.h"
#include "cli/view/device_text.h"
#include "controller/api/checkpoint_step.h"
#include "controller/cluster/cluster.h"
#include "controller/plan/rules.h"
#include "controller/reconcile/report_adapter.h"

namespace paceline::cli {

namespace {

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

api::MemberStatus member_state(const coordinator::MemberReport& m) {
  api::MemberStatus out;
  out.role = m.role;
  out.index = m.index;
  out.rank = m.rank;
  out.pod = m.pod;
  out.host = m.host;
  out.pid = m.pid;
  out.phase = m.lost                               ? "lost"
              : m.left                             ? "left"
              : !m.attached && m.member_id.empty() ? "pending"
              : !m.attached                        ? "gone"
                                                   : coordinator::phase_name(m.phase);
  out.step = m.step;
  out.telemetry = m.telemetry;
  return out;
}

// The coordinator hears of a program of one's own by the process beside it alone, whose end is not the
// program's: its pod knows better.
void correct_gone(RunState& state) {
  for (api::MemberStatus& member : state.members) {
    const auto& known = state.status.members;
    const auto pod = std::ranges::find(known, member.pod, &api::MemberStatus::pod);
    if (member.phase != "gone" || pod == known.end()) continue;
    const bool runs = pod->phase == cluster::pod_phase_name(cluster::PodPhase::kRunning);
    if (runs && !is_finished(state)) member.phase = "silent";
    if (plan::says_finished(*pod)) member.phase = "left";
  }
}

}  // namespace

void apply_report(const coordinator::Report& report, RunState& state, double seconds_before) {
  state.generation = report.generation.value;
  reconcile::apply_progress(report, state.progress);
  state.samples = report.samples;
  state.parameters = report.parameter_count;
  state.weights_checked_step = report.weights_checked_step;
  if (report.last_evaluation && report.last_evaluation->target_reached && !state.target_reached) {
    state.target_reached = true;
    state.target_seconds = seconds_before + seconds(report.elapsed);
  }
  if (report.last_checkpoint && report.last_checkpoint->error.empty())
    state.checkpoint = report.last_checkpoint->path;
  if (!report.checkpoint_path.empty()) state.checkpoint = report.checkpoint_path;
  if (!report.model_path.empty()) state.model = report.model_path;
  state.elapsed_seconds = seconds_before + seconds(report.elapsed);
  if (report.first_step_after && !state.first_step_seconds)
    state.first_step_seconds = seconds_before + seconds(*report.first_step_after);
  state.bytes_exchanged = report.bytes_sent;
  state.members.clear();
  for (const auto& member : report.members) state.members.push_back(member_state(member));
  if (std::string device = device_text(state.members); !device.empty()) state.device = std::move(device);
}

void keep_earlier(const RunState& earlier, RunState& state) {
  api::Progress& now = state.progress;
  const api::Progress& before = earlier.progress;
  const auto keep = [](const auto& was, auto& is) {
    if (!is) is = was;
  };
  keep(before.loss, now.loss);
  keep(before.test_accuracy, now.test_accuracy);
  keep(before.test_loss, now.test_loss);
  keep(before.test_auc, now.test_auc);
  if (earlier.target_reached) {
    state.target_reached = true;
    state.target_seconds = earlier.target_seconds;
  }
  now.samples_per_second = before.samples_per_second;
  if (now.goodput_seconds <= before.goodput_seconds) {
    now.goodput = before.goodput;
    now.goodput_seconds = before.goodput_seconds;
  }
  if (state.checkpoint.empty()) state.checkpoint = earlier.checkpoint;
  if (state.model.empty()) state.model = earlier.model;
  if (!earlier.device.empty()) state.device = earlier.device;
  if (now.step < before.step) {
    now.step = before.step;
    now.epoch = before.epoch;
    state.samples = earlier.samples;
  }
  if (now.total_steps == 0) now.total_steps = before.total_steps;
  if (state.parameters == 0) state.parameters = earlier.parameters;
  if (state.weights_checked_step == 0) state.weights_checked_step = earlier.weights_checked_step;
}

api::Progress progress_to_go_on(const api::Progress& earlier) {
  return {.step = earlier.step,
          .dropped_samples = earlier.dropped_samples,
          .goodput = earlier.goodput,
          .goodput_seconds = earlier.goodput_seconds};
}

void apply_status(const api::Status& status, RunState& state) {
  state.status = status;
  state.phase = api::name(status.phase);
  state.reason = status.reason;
  // To the controller every job that has not succeeded has failed; to its user this one did as it was told.
  if (status.phase == api::Phase::kFailed && status.reason == kStopped) state.phase = kStopped;
  state.message = status.message;
  state.progress.dropped_samples = status.progress.dropped_samples;
  if (is_finished(state)) {
    state.progress.eta_seconds.reset();
    note_all_gone(state);
  }
  correct_gone(state);
}

RunState without_own_paths(RunState state) {
  for (std::string* const path : {&state.checkpoint, &state.model}) {
    if (path->starts_with(state.folder + "/")) path->clear();
  }
  state.folder.clear();
  return state;
}

std::string evaluator_note(const api::Spec& spec, const coordinator::Report& report, const RunState& state,
                           std::string_view where) {
  if (!spec.replica_specs.evaluator || state.phase != "Succeeded") return "";
  const std::string logs = str_cat(": `paceline logs ", state.name, " evaluator-0", where, "` ");
  const std::optional<Step>& last = report.last_observed;
  if (!last) return str_cat("the evaluator has evaluated no checkpoint", logs, "says what it looked for");
  const std::optional<Step> newest = api::checkpoint_step(state.checkpoint);
  if (!newest || *last >= *newest) return "";
  return str_cat("the evaluator has not evaluated the last checkpoint, of step ", *newest,
                 "; its last one is of step ", *last, logs, "may say why");
}

std::optional<double> mean_rate(const coordinator::StepRecord& first, const coordinator::StepRecord& last,
                                double samples_per_step) {
  const double time = seconds(last.since_start - first.since_start);
  if (time <= 0 || last.step <= first.step) return std::nullopt;
  return static_cast<double>(last.step - first.step) * samples_per_step / time;
}

}  // namespace paceline::cli
