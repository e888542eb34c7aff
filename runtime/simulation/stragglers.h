#pragma once

// What stragglers cost in each mode: step times and rates of useful gradients, from the policies themselves
// in virtual time. Pure but for its seed.
//
// All modes have the same machines and the same global batch. So with backup workers a gradient has more
// samples, and takes as much longer; without backups those that are dropped are missing from the batch.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/simulation/delays.h"
#include "runtime/simulation/modes.h"
#include "runtime/simulation/virtual_cluster.h"

namespace paceline::simulation {

struct StragglerOptions {
  DelayModel delays;
  Step steps = 200;  // of each simulation
  std::uint64_t seed = 1;
  std::vector<int> staleness = {1, 4};  // of bounded staleness
  bool late_workers_stop = false;
  Step replaced_after = 20;  // where there are slow workers: others have their places after so many steps
};

struct ModeResult {
  Mode mode;
  ClusterReport report;
  double gradients_per_ms = 0;  // useful ones, each an N-th of a global batch, N being all workers
};

// One of the N+b that N machines can be.
struct BackupPoint {
  int backups = 0;
  double on_paper = 0;          // (N-b) / E[T_(N-b)]: where all workers begin every step together
  double gradients_per_ms = 0;  // where late workers first finish what they compute, or as the options say
};

struct StragglerCase {
  int workers = 0;
  double log_deviation = 0;
  double slowest_ms = 0;  // E[T_(N)]
  int best_backups = 0;   // on paper
  // Synchronous first; where there are slow workers, the same with others in their places comes next.
  std::vector<ModeResult> modes;
  std::vector<BackupPoint> backups;
};

// A report, of virtual time or of real servers, with its rate.
ModeResult rated(const Mode& mode, const ClusterReport& report);

// One mode in virtual time, with the delays, steps and seed of `options`. INVALID_ARGUMENT: a mode that is
// none.
absl::StatusOr<ModeResult> simulate_mode(const Mode& mode, const StragglerOptions& options);

// INVALID_ARGUMENT: a number out of range; it names it.
absl::StatusOr<StragglerCase> straggler_case(int workers, double log_deviation,
                                             const StragglerOptions& options);

}  // namespace paceline::simulation
