#include "controller/reconcile/report_adapter.h"

namespace paceline::reconcile {

namespace {

// Members say that they are at their end however they end: only of one whose work was done is "finished" the
// word.
const char* word_of(const coordinator::MemberReport& m) {
  const bool undone = m.phase == coordinator::Phase::kFinished && !m.finished;
  return undone ? "leaving" : coordinator::phase_name(m.phase);
}

plan::ReportedMember member_of(const coordinator::MemberReport& m) {
  plan::ReportedMember out;
  out.role = m.role;
  out.index = m.index;
  out.rank = m.rank;
  out.pod = m.pod;
  out.host = m.host;
  out.pid = m.pid;
  out.phase = word_of(m);
  out.finished = m.finished;
  out.step = m.step;
  out.telemetry = m.telemetry;
  return out;
}

}  // namespace

void apply_progress(const coordinator::Report& report, api::Progress& progress) {
  progress.step = report.step;
  progress.total_steps = report.total_steps;
  if (report.train_samples > 0)
    progress.epoch = static_cast<double>(report.samples) / static_cast<double>(report.train_samples);
  if (report.last_step) progress.loss = report.last_step->loss;
  if (report.last_evaluation) {
    progress.test_loss = report.last_evaluation->loss;
    progress.test_accuracy = report.last_evaluation->accuracy;
    progress.test_auc = report.last_evaluation->auc;
  }
  progress.samples_per_second = report.samples_per_second;
  progress.goodput = report.goodput;
  progress.goodput_seconds = report.goodput_seconds;
  progress.eta_seconds.reset();
  if (report.eta) progress.eta_seconds = std::chrono::duration<double>(*report.eta).count();
}

plan::JobReport to_plan(const coordinator::Report& report) {
  plan::JobReport out;
  out.state = report.state;
  out.in_state = report.in_state;
  out.generation = report.generation;
  out.reason = report.reason;
  for (const auto& member : report.members) {
    if (!member.member_id.empty()) out.members.push_back(member_of(member));  // those that have attached
  }
  out.fault = report.verdict;
  out.fault_age = report.verdict_age;
  out.lost = report.lost;
  out.shortage = report.shortage;
  out.refused = report.refused;
  out.view_change = report.view_change;
  out.rebalance = report.rebalance;
  out.preflight = report.preflight;
  out.save_answer = report.save_answer;
  out.stragglers = report.stragglers;
  out.cleared = report.cleared;
  out.handed_over = report.handed_over;
  if (report.successor && report.successor->attached) out.successor_phase = word_of(*report.successor);
  apply_progress(report, out.progress);
  if (report.last_step) out.learning_rate = report.last_step->learning_rate;
  out.model_path = report.model_path;
  out.checkpoint_path = report.checkpoint_path;
  if (out.checkpoint_path.empty() && report.last_checkpoint)
    out.checkpoint_path = report.last_checkpoint->path;
  if (report.told_checkpoint)
    out.last_save = plan::LastSave{report.told_checkpoint->step, report.told_checkpoint->error};
  return out;
}

}  // namespace paceline::reconcile
