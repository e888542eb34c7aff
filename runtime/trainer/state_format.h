#pragma once

// What the checkpoints of one job hold (docs/checkpoints.md): weights, the optimizer's state, and where the
// training stands; the same whether all-reduce made it or parameter servers did, so that a job may go on with
// either. Immutable; thread-safe.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/pserver/policy/policy.h"

namespace paceline::trainer {

// Somebody's memory.
struct StateVectors {
  std::span<float> weights;
  std::vector<optimizer::StateVector> optimizer;  // as long as the weights
};

struct StatePosition {
  Step step = 0;                     // global batches applied
  std::int64_t optimizer_steps = 0;  // updates that made the state
  pserver::UnitsApplied units;       // units_per_step 0: all-reduce made it, by whole steps

  bool operator==(const StatePosition&) const = default;

  // Whole steps of one update each.
  static StatePosition after(Step step) { return {step, step, {}}; }
  // Whether the steps say all.
  bool is_whole() const {
    return optimizer_steps == step && units.missing.empty() && units.below == step * units.units_per_step;
  }
};

// A snapshot and the memory that it needs beside the vectors'.
struct NamedState {
  NamedState() = default;
  NamedState(NamedState&&) = default;  // a copy would point into the original
  checkpoint::Snapshot snapshot;
  std::vector<std::int64_t> position;
};

class StateFormat {
 public:
  explicit StateFormat(const v1::TrainingSpec& spec);

  // Valid as long as the vectors stay as they are.
  NamedState name(const StateVectors& vectors, const StatePosition& position) const;
  // Into `vectors`. DATA_LOSS: a tensor is missing, of another size, or can't be meant, or the manifest's
  // counts contradict one another; INVALID_ARGUMENT: made by another job, or one whose optimizer had another
  // state. REQUIRES: a global batch above 0.
  absl::StatusOr<StatePosition> restore(const checkpoint::LoadedCheckpoint& loaded,
                                        const StateVectors& vectors) const;

 private:
  const std::string spec_hash_;
  const std::int64_t global_batch_;
  const std::uint64_t seed_;
};

}  // namespace paceline::trainer
