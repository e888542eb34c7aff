#include "cli/run/run_state_builder.h"

#include "base/text.h"
#include "cli/state/stopped.h"
#include "cli/view/device_text.h"
#include "controller/api/checkpoint_step.h"

namespace paceline::cli {

namespace {

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
double millis(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

MemberState member_state(const coordinator::MemberReport& m) {
  MemberState out;
  out.pod = m.pod;
  out.name = str_cat(role_name(m.role), "-", m.index);
  out.pid = m.pid;
  out.phase = m.lost                               ? "lost"
              : m.left                             ? "left"
              : !m.attached && m.member_id.empty() ? "pending"
              : !m.attached                        ? "gone"
                                                   : coordinator::phase_name(m.phase);
  out.step = m.step;
  out.input_ms = millis(m.mean_times.input);
  out.compute_ms = millis(m.mean_times.compute);
  out.wait_ms = millis(m.mean_times.wait);
  out.transfer_ms = millis(m.mean_times.transfer);
  out.update_ms = millis(m.mean_times.update);
  out.step_ms = millis(m.mean_times.step);
  out.bytes_sent = m.bytes_sent;
  if (m.server) {
    const coordinator::ServerReport& s = *m.server;
    out.server = ServerState{.load = s.load,
                             .bytes_per_second = s.bytes_per_second,
                             .queue = s.queue,
                             .updates = s.updates,
                             .rows = s.rows,
                             .row_bytes = static_cast<std::int64_t>(s.row_bytes),
                             .rows_evicted = s.rows_evicted,
                             .hottest = {}};
    for (const coordinator::HotRow& row : s.hottest)
      out.server->hottest.push_back({row.table, row.id, row.pulls});
  }
  if (m.staleness) {
    const coordinator::StalenessReport& s = *m.staleness;
    out.staleness = StalenessState{.applied = s.applied,
                                   .dropped = s.dropped,
                                   .max = s.max,
                                   .mean = s.mean,
                                   .wait_seconds = seconds(s.wait),
                                   .histogram = s.histogram};
  }
  if (m.gpu) {
    const coordinator::GpuReport& g = *m.gpu;
    out.gpu = GpuState{.name = g.name,
                       .index = g.index,
                       .uuid = g.uuid.empty() ? std::nullopt : std::optional(g.uuid),
                       .compute_ms = g.compute_ms,
                       .update_ms = g.update_ms,
                       .utilization = g.utilization,
                       .memory_utilization = g.memory_utilization,
                       .memory_used_mib = g.memory_used_mib,
                       .memory_total_mib = g.memory_total_mib,
                       .sm_clock_mhz = g.sm_clock_mhz,
                       .most_sm_clock_mhz = g.most_sm_clock_mhz,
                       .memory_clock_mhz = g.memory_clock_mhz,
                       .most_memory_clock_mhz = g.most_memory_clock_mhz,
                       .temperature_celsius = g.temperature_celsius,
                       .power_watts = g.power_watts,
                       .power_limit_watts = g.power_limit_watts,
                       .slowdowns = g.slowdowns,
                       .corrected_ecc_errors = g.corrected_ecc_errors,
                       .uncorrected_ecc_errors = g.uncorrected_ecc_errors,
                       .pcie_replays = g.pcie_replays,
                       .xids = g.xids,
                       .last_xid = g.last_xid};
  }
  return out;
}

}  // namespace

void apply_report(const coordinator::Report& report, RunState& state, double seconds_before) {
  state.generation = report.generation.value;
  state.step = report.step;
  state.total_steps = report.total_steps;
  state.samples = report.samples;
  if (report.train_samples > 0)
    state.epoch = static_cast<double>(report.samples) / static_cast<double>(report.train_samples);
  state.parameters = report.parameter_count;
  state.weights_checked_step = report.weights_checked_step;
  if (report.last_step) state.loss = report.last_step->loss;
  if (report.last_evaluation) {
    state.accuracy = report.last_evaluation->accuracy;
    state.test_loss = report.last_evaluation->loss;
    state.auc = report.last_evaluation->auc;
    if (report.last_evaluation->target_reached && !state.target_reached) {
      state.target_reached = true;
      state.target_seconds = seconds_before + seconds(report.elapsed);
    }
  }
  if (report.last_checkpoint && report.last_checkpoint->error.empty())
    state.checkpoint = report.last_checkpoint->path;
  if (!report.checkpoint_path.empty()) state.checkpoint = report.checkpoint_path;
  if (!report.model_path.empty()) state.model = report.model_path;
  state.samples_per_second = report.samples_per_second;
  state.goodput = report.goodput;
  state.eta_seconds.reset();
  if (report.eta) state.eta_seconds = seconds(*report.eta);
  state.elapsed_seconds = seconds_before + seconds(report.elapsed);
  if (report.first_step_after && !state.first_step_seconds)
    state.first_step_seconds = seconds_before + seconds(*report.first_step_after);
  state.bytes_exchanged = report.bytes_sent;
  state.members.clear();
  for (const auto& member : report.members) state.members.push_back(member_state(member));
  if (std::string device = device_text(state.members); !device.empty()) state.device = std::move(device);
}

void keep_earlier(const RunState& earlier, RunState& state) {
  const auto keep = [](const auto& was, auto& is) {
    if (!is) is = was;
  };
  keep(earlier.loss, state.loss);
  keep(earlier.accuracy, state.accuracy);
  keep(earlier.test_loss, state.test_loss);
  keep(earlier.auc, state.auc);
  if (earlier.target_reached) {
    state.target_reached = true;
    state.target_seconds = earlier.target_seconds;
  }
  state.samples_per_second = earlier.samples_per_second;
  state.goodput = earlier.goodput;
  if (state.checkpoint.empty()) state.checkpoint = earlier.checkpoint;
  if (state.model.empty()) state.model = earlier.model;
  if (!earlier.device.empty()) state.device = earlier.device;
  if (state.step < earlier.step) {
    state.step = earlier.step;
    state.samples = earlier.samples;
    state.epoch = earlier.epoch;
  }
  if (state.weights_checked_step == 0) state.weights_checked_step = earlier.weights_checked_step;
}

void apply_status(const api::Status& status, RunState& state) {
  state.status = status;
  state.phase = api::name(status.phase);
  state.reason = status.reason;
  // To the controller every job that has not succeeded has failed; to its user this one did as it was told.
  if (status.phase == api::Phase::kFailed && status.reason == kStopped) state.phase = kStopped;
  state.message = status.message;
  if (is_finished(state)) state.eta_seconds.reset();
}

std::string evaluator_note(const api::Spec& spec, const coordinator::Report& report, const RunState& state) {
  if (!spec.replica_specs.evaluator || state.phase != "Succeeded") return "";
  const std::string logs = str_cat(": `paceline logs ", state.name, " evaluator-0` ");
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
