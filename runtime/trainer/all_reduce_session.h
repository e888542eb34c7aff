#pragma once

// All-reduce within one view: the communicator, the exchange, this member's part of each batch. Nothing is
// allocated after the first step, but where a threshold is chosen (partial_steps.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/collective/communicator.h"
#include "runtime/data/dataset.h"
#include "runtime/data/ledger.h"
#include "runtime/data/prefetcher.h"
#include "runtime/exchange/gradient_exchange.h"
#include "runtime/member/step_clock.h"
#include "runtime/tensor/program.h"
#include "runtime/trainer/controls.h"
#include "runtime/trainer/partial_steps.h"
#include "runtime/trainer/passes.h"
#include "runtime/trainer/replica.h"
#include "runtime/trainer/session.h"

namespace paceline::trainer {

// What a session works with; all that it refers to outlives the session.
struct SessionParts {
  const v1::TrainingSpec& spec;
  const Clock& clock;
  Replica& replica;
  tensor::Program& program;  // bound to the replica, wherever its state is
  collective::Communicator& communicator;
  std::int64_t trainers = 1;                        // v1::View::trainers
  std::function<void()> before_gradient = nullptr;  // hears before the host's gradient is written over
  // Of the devices of all members; null: the hosts exchange.
  std::shared_ptr<exchange::GradientExchange> device_exchange = nullptr;
  // Hears of the threshold of partial steps when it is chosen; null: nobody does.
  std::function<void(const std::optional<PartialSteps::Threshold>&)> on_threshold = nullptr;
};

class AllReduceSession final : public Session {
 public:
  // `train` begins at the replica's step; `total_steps` is where it ends. REQUIRES: where steps may be
  // partial, the host computes.
  static absl::StatusOr<std::unique_ptr<AllReduceSession>> open(const SessionParts& parts,
                                                                std::shared_ptr<const data::Dataset> train,
                                                                std::vector<double> shares, Step total_steps);

  absl::StatusOr<StepResult> step(const Agreement& wishes, member::StepClock& clock) override;
  absl::StatusOr<EvaluationResult> evaluate(Evaluator& evaluator) override {
    return evaluator.run(parts_.communicator, parts_.clock, timeout_);
  }

 private:
  AllReduceSession(const SessionParts& parts, std::shared_ptr<const data::Dataset> train,
                   std::vector<double> shares, Step total_steps);
  static absl::StatusOr<std::shared_ptr<exchange::GradientExchange>> open_exchange(const SessionParts& parts);
  void start_input();
  absl::StatusOr<data::Batch> next_batch();
  absl::Status no_samples(const Agreement& wishes);
  absl::Status declare_controls(double loss_sum, const Agreement& wishes);
  absl::Status choose_threshold(Duration late, member::StepClock& clock);
  absl::Status compute(const data::Batch& batch, const Agreement& wishes);
  absl::Status update(StepResult& result, const data::Batch& batch);
  void place_update(member::StepClock& clock);

  const SessionParts parts_;
  const std::shared_ptr<const data::Dataset> train_;
  const std::vector<double> shares_;
  const Step total_steps_;
  const data::Ledger ledger_;
  const std::int64_t rows_;  // this member's samples of each step
  const Duration timeout_;
  std::shared_ptr<exchange::GradientExchange> exchange_;
  std::unique_ptr<data::Prefetcher> input_;  // null where rows_ is 0
  PartialSteps partial_;
  TimePoint step_began_{};
  std::int64_t left_out_ = 0;  // of this member's samples, in the step under way
  Passes passes_;
  Passes::BeforeLast before_last_;
  tensor::Program::OnReady on_ready_;  // null: nobody is to hear of parts
  Agreement wishes_;                   // of the step under way
  absl::Status ready_status_;          // of the ranges declared in this step
  bool rank_zero_saves_ = false;       // since the last step
};

}  // namespace paceline::trainer
