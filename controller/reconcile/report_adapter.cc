#include "controller/reconcile/report_adapter.h"

#include <cmath>

#include "base/text.h"

namespace paceline::reconcile {

namespace {

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

// For people to read, in a status that has to be small: all members' are written with every change.
double thousandths(double value) {
  return std::round(value * 1000) / 1000;
}

plan::ReportPhase phase_of(coordinator::JobState state) {
  switch (state) {
    case coordinator::JobState::kForming:
      return plan::ReportPhase::kForming;
    case coordinator::JobState::kRunning:
      return plan::ReportPhase::kRunning;
    case coordinator::JobState::kDraining:
      return plan::ReportPhase::kDraining;
    case coordinator::JobState::kStopped:
      return plan::ReportPhase::kStopped;
    case coordinator::JobState::kFinished:
      return plan::ReportPhase::kFinished;
    case coordinator::JobState::kFailed:
      return plan::ReportPhase::kFailed;
  }
  return plan::ReportPhase::kForming;
}

api::ServerStatus status_of(const coordinator::ServerReport& r) {
  api::ServerStatus out{.load = r.load,
                        .bytes_per_second = r.bytes_per_second,
                        .queue = r.queue,
                        .updates = r.updates,
                        .rows = r.rows,
                        .row_bytes = static_cast<std::int64_t>(r.row_bytes),
                        .rows_evicted = r.rows_evicted,
                        .hottest = {}};
  for (const coordinator::HotRow& row : r.hottest)
    out.hottest.push_back({row.table, static_cast<std::int64_t>(row.id), row.pulls});
  return out;
}

api::StalenessStatus status_of(const coordinator::StalenessReport& r) {
  api::StalenessStatus out{.applied = r.applied,
                           .dropped = r.dropped,
                           .max = r.max,
                           .mean = thousandths(r.mean),
                           .wait_seconds = thousandths(seconds(r.wait)),
                           .histogram = r.histogram};
  while (!out.histogram.empty() && out.histogram.back() == 0) out.histogram.pop_back();
  return out;
}

std::optional<double> rounded(const std::optional<double>& value) {
  return value ? std::optional(std::round(*value)) : std::nullopt;
}
std::optional<double> rounded_ms(const std::optional<double>& value) {
  return value ? std::optional(thousandths(*value)) : std::nullopt;
}

api::GpuStatus status_of(const coordinator::GpuReport& r) {
  return {.name = r.name,
          .compute_ms = rounded_ms(r.compute_ms),
          .update_ms = rounded_ms(r.update_ms),
          .utilization = r.utilization,
          .memory_utilization = r.memory_utilization,
          .sm_clock_mhz = r.sm_clock_mhz,
          .most_sm_clock_mhz = r.most_sm_clock_mhz,
          .memory_clock_mhz = r.memory_clock_mhz,
          .temperature_celsius = r.temperature_celsius,
          .power_watts = rounded(r.power_watts),
          .power_limit_watts = rounded(r.power_limit_watts),
          .slowdowns = r.slowdowns,
          .corrected_ecc_errors = r.corrected_ecc_errors,
          .uncorrected_ecc_errors = r.uncorrected_ecc_errors,
          .pcie_replays = r.pcie_replays,
          .xids = r.xids,
          .last_xid = r.last_xid};
}

// Members say that they are at their end however they end: only of one whose work was done is "finished" the
// word.
const char* word_of(const coordinator::MemberReport& m) {
  const bool undone = m.phase == coordinator::Phase::kFinished && !m.finished;
  return undone ? "leaving" : coordinator::phase_name(m.phase);
}

plan::ReportedMember member_of(const coordinator::MemberReport& m) {
  plan::ReportedMember out;
  out.id = MemberId{m.member_id};
  out.role = m.role;
  out.index = m.index;
  out.rank = m.rank;
  out.pod = m.pod;
  out.host = m.host;
  out.pid = m.pid;
  out.phase = word_of(m);
  out.finished = m.finished;
  out.step = m.step;
  out.last_heard = m.silent;
  if (m.server) out.server = status_of(*m.server);
  if (m.staleness) out.staleness = status_of(*m.staleness);
  if (m.gpu) out.gpu = status_of(*m.gpu);
  const double step = seconds(m.mean_times.step);
  if (step > 0) {
    out.compute_fraction = thousandths(seconds(m.mean_times.compute) / step);
    out.wait_fraction = thousandths(seconds(m.mean_times.wait) / step);
  }
  return out;
}

api::Progress progress_of(const coordinator::Report& report) {
  api::Progress out;
  out.step = report.step;
  out.total_steps = report.total_steps;
  if (report.train_samples > 0)
    out.epoch = static_cast<double>(report.samples) / static_cast<double>(report.train_samples);
  if (report.last_step) out.loss = report.last_step->loss;
  if (report.last_evaluation) {
    out.test_loss = report.last_evaluation->loss;
    out.test_accuracy = report.last_evaluation->accuracy;
    out.test_auc = report.last_evaluation->auc;
  }
  out.samples_per_second = report.samples_per_second;
  out.goodput = report.goodput;
  if (report.eta) out.eta_seconds = seconds(*report.eta);
  return out;
}

}  // namespace

plan::JobReport to_plan(const coordinator::Report& report) {
  plan::JobReport out;
  out.phase = phase_of(report.state);
  out.in_phase = report.in_state;
  out.generation = report.generation;
  out.reason = report.reason;
  for (const auto& member : report.members) {
    if (!member.member_id.empty()) out.members.push_back(member_of(member));  // those that have attached
  }
  out.fault = report.verdict;
  out.fault_age = report.verdict_age;
  for (const coordinator::LostMember& each : report.lost)
    out.lost.push_back({each.role, each.index, each.pod, each.message});
  out.refused = report.refused;
  out.progress = progress_of(report);
  out.model_path = report.model_path;
  out.checkpoint_path = report.checkpoint_path;
  if (out.checkpoint_path.empty() && report.last_checkpoint)
    out.checkpoint_path = report.last_checkpoint->path;
  if (report.told_checkpoint)
    out.last_save = plan::LastSave{report.told_checkpoint->step, report.told_checkpoint->error};
  return out;
}

}  // namespace paceline::reconcile
