#pragma once

// How a member's life ended: its process's exit code follows from it.

#include <string>

#include "absl/status/status.h"
#include "base/ids.h"
#include "runtime/trainer/step_machine.h"

namespace paceline::trainer {

struct Outcome {
  Ending ending = Ending::kNone;
  absl::Status error;           // kFailed: this member's; kEnded: why the membership ended
  bool configuration = false;   // kFailed before the first view: the job can't be trained as it is written
  Step step = 0;                // applied
  std::string model_path;       // rank 0, kFinished
  std::string checkpoint_path;  // of the last one that this member wrote
};

}  // namespace paceline::trainer
