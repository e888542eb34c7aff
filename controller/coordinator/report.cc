#include "controller/coordinator/report.h"

namespace paceline::coordinator {

const char* job_state_name(JobState state) {
  switch (state) {
    case JobState::kForming:
      return "Forming";
    case JobState::kRunning:
      return "Running";
    case JobState::kDraining:
      return "Draining";
    case JobState::kFinished:
      return "Finished";
    case JobState::kFailed:
      return "Failed";
    case JobState::kStopped:
      return "Stopped";
  }
  return "?";
}

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kWaiting:
      return "waiting";
    case Phase::kTraining:
      return "training";
    case Phase::kEvaluating:
      return "evaluating";
    case Phase::kCheckpointing:
      return "checkpointing";
    case Phase::kFinished:
      return "finished";
  }
  return "?";
}

}  // namespace paceline::coordinator
