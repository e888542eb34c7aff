#pragma once

// A gpt's weights from what its training left: a checkpoint, or the final model (docs/checkpoints.md). Only
// reads. Errors name the file, what is wrong and what was expected.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/checkpoint/file_store.h"
#include "runtime/checkpoint/parts.h"

namespace paceline::generate {

struct LoadedWeights {
  std::vector<float> values;         // as weights_layout() says
  std::int64_t step = -1;            // updates that are in them; -1: the file does not say
  std::string path;                  // ".../checkpoints/step-000000100", ".../model/model.safetensors"
  std::vector<std::string> refused;  // newer checkpoints that were passed over, and why
};

// `folder` is a checkpoint's (step-000000100), or has some, of which the newest complete one is taken.
// NOT_FOUND: there is none. DATA_LOSS: it, or all of them, are damaged. INVALID_ARGUMENT: of another job than
// `spec`. `go_on`, unless null, is asked before each MiB: its error is the result. REQUIRES: a gpt's spec.
absl::StatusOr<LoadedWeights> read_checkpoint(checkpoint::FileStore& files, const std::string& folder,
                                              const v1::TrainingSpec& spec,
                                              const checkpoint::GoOn& go_on = nullptr);

// `path` is a model's file, or the folder that has model.safetensors: a tensor for each parameter, F32 or
// BF16. NOT_FOUND. DATA_LOSS: damaged. INVALID_ARGUMENT: of another model than `spec`; both are told before
// memory is taken for it. RESOURCE_EXHAUSTED: no memory.
absl::StatusOr<LoadedWeights> read_model(const checkpoint::FileStore& files, const std::string& path,
                                         const v1::GptSpec& spec);

}  // namespace paceline::generate
