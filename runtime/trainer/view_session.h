#pragma once

// What belongs to one view: the communicator, the exchange, this member's part of each batch. It runs steps,
// and is thrown away with the view. One thread. Nothing is allocated after the first step.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/collective/fabric.h"
#include "runtime/data/dataset.h"
#include "runtime/data/ledger.h"
#include "runtime/data/prefetcher.h"
#include "runtime/exchange/gradient_exchange.h"
#include "runtime/member/step_clock.h"
#include "runtime/tensor/program.h"
#include "runtime/trainer/controls.h"
#include "runtime/trainer/replica.h"

namespace paceline::trainer {

// This member's place in a view. INVALID_ARGUMENT: the view or the key isn't as it must be, or it lacks the
// member.
absl::StatusOr<collective::Group> group_of(const v1::View& view, const std::string& member_id,
                                           const v1::Welcome& welcome);
std::vector<double> shares_of(const v1::View& view);

struct StepResult {
  Agreement agreed;
  double loss = 0;  // mean over the global batch
  double learning_rate = 0;
  exchange::ExchangeTimes exchange;
};

// What a session works with; all of it outlives the session.
struct SessionParts {
  const v1::TrainingSpec& spec;
  const Clock& clock;
  Replica& replica;
  tensor::Program& program;  // bound to the replica
  collective::Communicator& communicator;
};

class ViewSession {
 public:
  // `train` begins at the replica's step; `total_steps` is where it ends.
  static absl::StatusOr<std::unique_ptr<ViewSession>> open(const SessionParts& parts,
                                                           std::shared_ptr<const data::Dataset> train,
                                                           std::vector<double> shares, Step total_steps);

  // The replica's next step: input, passes, exchange, update; `clock` says where the time went. On an error
  // the replica is as it was: the communicator's error (a peer's fault, or close()); INTERNAL: the data
  // set's; OUT_OF_RANGE: the loss or the gradient isn't finite.
  absl::StatusOr<StepResult> step(const Agreement& wishes, member::StepClock& clock);

 private:
  ViewSession(const SessionParts& parts, std::shared_ptr<const data::Dataset> train,
              std::vector<double> shares, Step total_steps);
  void start_input();
  absl::StatusOr<data::Batch> next_batch();
  absl::Status passes(const data::Batch& batch, const Agreement& wishes);
  absl::Status no_samples(const Agreement& wishes);
  absl::Status declare_controls(double loss_sum, const Agreement& wishes);
  absl::Status update(StepResult& result);

  const SessionParts parts_;
  const std::shared_ptr<const data::Dataset> train_;
  const std::vector<double> shares_;
  const Step total_steps_;
  const data::Ledger ledger_;
  const std::int64_t rows_;  // this member's samples of each step
  const Duration timeout_;
  std::unique_ptr<exchange::GradientExchange> exchange_;
  std::unique_ptr<data::Prefetcher> input_;  // null where rows_ is 0
  tensor::Program::OnReady on_ready_;
  const tensor::Program::OnReady not_yet_;  // null: more passes follow
  absl::Status ready_status_;               // of the ranges declared in this step
  bool rank_zero_saves_ = false;            // since the last step
};

}  // namespace paceline::trainer
