#pragma once

// An evaluator's whole life: beside the training, of which it is no member, it evaluates the newest
// checkpoint whenever there is a new one, and reports what it found; it ends when the job does, which waits
// for its look at what the training saved last. Its own end touches nothing else. Of sparse tables it keeps
// the rows that the held-out samples need.
//
// run() is called once, by the process's main thread. What it was given outlives it.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/member/membership.h"
#include "runtime/trainer/checkpoint_rows.h"
#include "runtime/trainer/evaluator.h"
#include "runtime/trainer/outcome.h"
#include "runtime/trainer/state_format.h"
#include "runtime/trainer/stop_request.h"
#include "runtime/trainer/workload.h"

namespace paceline::trainer {

struct EvaluatorParts {
  member::Membership& membership;
  const Clock& clock;
  const Logger& logger;
  StopRequest& stop;
  OpenWorkload open_workload;
  checkpoint::FileStore* files = nullptr;  // where checkpoints are; null: this machine's
};

class EvaluatorMember {
 public:
  explicit EvaluatorMember(EvaluatorParts parts);

  Outcome run();

 private:
  absl::Status prepare();
  absl::Status look();
  absl::Status evaluate(const checkpoint::CheckpointStore& store, const checkpoint::LoadedCheckpoint& loaded);
  absl::Status go_on() const;
  // What it looks for and where, and what to do where it may not look or there is no (whole) checkpoint; or
  // why it has evaluated none.
  std::string none_found() const;
  std::string nothing_evaluated() const;
  Outcome leave(v1::Leaving::Outcome how, const absl::Status& error);

  const EvaluatorParts parts_;
  const std::unique_ptr<checkpoint::FileStore> own_files_;
  checkpoint::FileStore& files_;
  const v1::TrainingSpec& spec_;
  const StateFormat format_;
  const TimePoint began_;
  Workload workload_;
  std::vector<float> weights_;
  std::unique_ptr<CheckpointRows> rows_;  // null: the model has no tables
  std::unique_ptr<Evaluator> evaluator_;
  std::string newest_;     // that needs no further look
  std::string failed_;     // that could not be evaluated at the look before; twice is enough
  absl::Status told_;      // of the look before: the same is not said again
  std::string tried_;      // that was looked at; empty: there was no whole one
  absl::Status may_look_;  // into the folder; as of the last look
  bool told_of_none_ = false;
  bool seen_the_last_ = false;  // after the training
  Generation seen_;
  Outcome outcome_;
};

}  // namespace paceline::trainer
