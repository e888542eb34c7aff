#pragma once

// Real training in virtual time: a job's own model and data, real gradients of real batches, the servers'
// arithmetic, and simulated delays. What comes out is how long each mode takes to an accuracy.
//
// As on the servers (docs/parameter-servers.md): a gradient is computed with the weights that its turn reads,
// the sum is taken in the order of workers, scaled as the policy says, and applied by runtime/optimizer with
// the learning rate of the step. A gradient's delay is multiplied by its number of samples over those of a
// synchronous one (globalBatchSize / N). Repeatable: the same seeds give the same bits on the same kind of
// machine. One thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/simulation/delays.h"
#include "runtime/simulation/modes.h"
#include "runtime/simulation/virtual_cluster.h"

namespace paceline::simulation {

struct Evaluation {
  double ms = 0;  // virtual
  Step step = 0;
  double loss = 0;  // of the held-out samples
  double accuracy = 0;
};

struct TrainingResult {
  Mode mode;
  std::vector<Evaluation> evaluations;
  bool reached = false;   // the target; the last evaluation is that one
  bool diverged = false;  // weights or loss are not finite any more, and the training ended there
  ClusterReport cluster;
};

struct TrainingOptions {
  DelayModel delays;
  std::uint64_t seed = 1;  // of the delays
  std::uint64_t training_seed =
      1;  // of the first weights and the batches; the job's own is that of the held-out samples
};

class VirtualTraining {
 public:
  // Opens the job's data and compiles its model, once for all modes. Errors: those of the trainer for the
  // same job; INVALID_ARGUMENT where it has no held-out samples.
  static absl::StatusOr<std::unique_ptr<VirtualTraining>> open(const v1::TrainingSpec& spec);
  virtual ~VirtualTraining() = default;

  virtual Step total_steps() const = 0;
  // INVALID_ARGUMENT: a mode that is none, or with more units per step than a global batch has samples; else
  // input that can't be read.
  virtual absl::StatusOr<TrainingResult> run(const Mode& mode, const TrainingOptions& options) = 0;
};

}  // namespace paceline::simulation
