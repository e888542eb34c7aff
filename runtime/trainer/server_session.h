#pragma once

// Parameter servers within one view (docs/parameter-servers.md): the servers say which unit this member
// computes and hold the weights; a step is one turn. Nothing is allocated after the first one.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/data/dataset.h"
#include "runtime/data/ledger.h"
#include "runtime/data/unit_prefetcher.h"
#include "runtime/pserver/client.h"
#include "runtime/tensor/program.h"
#include "runtime/trainer/passes.h"
#include "runtime/trainer/replica.h"
#include "runtime/trainer/session.h"
#include "runtime/trainer/sparse_rows.h"

namespace paceline::trainer {

// What a session works with; all of it outlives the session.
struct ServerSessionParts {
  const int rank;
  const v1::TrainingSpec& spec;
  const StepPlan& plan;
  const Clock& clock;
  Replica& replica;
  tensor::Program& program;  // bound to the replica
  pserver::Client& client;   // of the replica's weights and gradient
  SparseRows* rows;  // of a unit, their gradients in the fabric's arena; null: the model has no tables
};

// The samples of each unit of a step.
std::vector<std::int64_t> unit_rows(const v1::TrainingSpec& spec);

// Whether an update waits for every worker's gradient: none of them can be missed then.
bool updates_need_everybody(const v1::ParameterServerSpec& spec);

// How long worker `rank`, whose weights are those of `step`, waits for its turn: the job's timeout, and where
// it may be worker 0's evaluation that it waits for, kSaveLimit more.
Duration turn_patience(const v1::TrainingSpec& spec, const StepPlan& plan, int rank, Step step);

class ServerSession final : public Session {
 public:
  // Takes the first turn, and with it the weights: it waits for what worker 0 initialises. The client's
  // errors.
  static absl::StatusOr<std::unique_ptr<ServerSession>> open(const ServerSessionParts& parts,
                                                             std::shared_ptr<const data::Dataset> train,
                                                             Deadline deadline);

  // A gradient that the servers drop is no error: the next turn has newer weights.
  absl::StatusOr<StepResult> step(const Agreement& wishes, member::StepClock& clock) override;
  absl::StatusOr<EvaluationResult> evaluate(Evaluator& evaluator) override;
  absl::Status report_target_reached() override;
  void leave() override;

 private:
  ServerSession(const ServerSessionParts& parts, std::shared_ptr<const data::Dataset> train);
  absl::Status compute(const data::Batch& batch, const Agreement& wishes);
  absl::Status push(std::size_t begin, std::size_t end);
  absl::Status wait_turn(Deadline deadline);
  StepResult result_of(const Agreement& wishes, Step before);

  const ServerSessionParts parts_;
  const std::shared_ptr<const data::Dataset> train_;
  const std::vector<double> shares_;  // of the units of a step
  const data::Ledger ledger_;
  const bool overlap_;
  std::unique_ptr<data::UnitPrefetcher> input_;
  Passes passes_;
  Passes::BeforeLast before_last_;
  tensor::Program::OnReady on_ready_;
  SparseRows::Pull pull_;
  double loss_sum_ = 0;   // of the unit under way
  double told_loss_ = 0;  // of what was applied since the last step that was told, by all workers
  std::int64_t told_samples_ = 0;
  absl::Status push_status_;
  pserver::TurnResult turn_;
  pserver::ClientCounters counted_;
};

}  // namespace paceline::trainer
