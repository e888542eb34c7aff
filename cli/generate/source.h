#pragma once

// Whose weights `generate` computes with: a run's, or those of a checkpoint or a model, and of which job.

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "cli/session.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/checkpoint/parts.h"
#include "runtime/generate/weights.h"

namespace paceline::cli {

// As given on the command line; empty: not given.
struct SourceOptions {
  std::string run;                // else the newest of a gpt
  std::string checkpoint, model;  // at most one
  std::string job;                // of a checkpoint or model that lies in no run's folder
};

struct Source {
  std::string run;  // empty: of a checkpoint or model alone
  std::string job;
  v1::TrainingSpec spec;  // of a gpt
  generate::LoadedWeights weights;
};

// A run's final model, or, where there is none or it is older, its newest checkpoint. What is to be known of
// the job's file goes to `notes`. INVALID_ARGUMENT: options that contradict one another, no gpt, a job that
// the weights are not of. NOT_FOUND: no such run, file, or nothing saved yet. DATA_LOSS: damaged. `go_on` is
// asked while it reads a checkpoint: its error is the result. A model's file is read at once.
absl::StatusOr<Source> open_source(const Session& session, const SourceOptions& options,
                                   const checkpoint::GoOn& go_on, std::ostream& notes);

}  // namespace paceline::cli
