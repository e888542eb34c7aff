#include "controller/coordinator/report.h"

namespace paceline::coordinator {

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
    case Phase::kCatchingUp:
      return "catching up";
    case Phase::kStandby:
      return "standby";
  }
  return "?";
}

}  // namespace paceline::coordinator
