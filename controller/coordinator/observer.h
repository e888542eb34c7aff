#pragma once

// Hears what happens in one job: the live view, the metrics file, events.
//
// Calls come one at a time and in order, from the server's threads, without locks held: an observer may ask
// the Job for a report or stop it, but not close it. It should return within milliseconds; what it
// delays is dropped (Report::dropped_records) rather than queued without bound - records and reasons, never a
// view or a verdict. It outlives its job's close().

#include <span>
#include <string_view>

#include "controller/coordinator/report.h"

namespace paceline::coordinator {

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_view(const ViewRecord&) {}
  virtual void on_view_change(const api::ViewChange&) {}  // later: a view has taken its first step
  virtual void on_preflight(const api::Preflight&) {}     // before the first view
  virtual void on_straggler(const StragglerChange&) {}
  virtual void on_rebalance(const api::Rebalance&) {}    // after its view
  virtual void on_steps(std::span<const StepRecord>) {}  // rank 0's, in order, each once
  virtual void on_member_steps(const MemberSteps&) {}
  virtual void on_evaluation(const EvaluationRecord&) {}
  virtual void on_checkpoint(const CheckpointRecord&) {}
  virtual void on_verdict(const api::Fault&) {}
  virtual void on_lost(const api::Fault&) {}   // a member is gone, and the job goes on without it
  virtual void on_reason(std::string_view) {}  // a decision in one line, for the log
  virtual void on_report_changed() {}          // after the others of its batch; ask Job::report()
  virtual void on_batch_end() {}  // last of what one input brought: an evaluation and its step's records, say
};

}  // namespace paceline::coordinator
