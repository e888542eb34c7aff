#pragma once

// A small GPT-2 (Radford et al. 2019): token and position embeddings, `layers` pre-norm blocks of causal
// self-attention and a GELU network of four times the width, a last layer norm, and a head that is the token
// embedding itself. No dropout.
//
// Starts as GPT-2 does: normal, deviation 0.02, and 0.02 / sqrt(2 layers) for the two projections of a block
// that add to the residual path; biases 0, gains 1. Weight decay applies to matrices and embeddings.
// Parameters are named and shaped as those of the PyTorch model in benchmarks/peers/gpt_torch.py: its
// state_dict and our model files exchange weights.

#include <memory>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/model/model.h"

namespace paceline::model {

// INVALID_ARGUMENT names the field: all >= 1, and width a multiple of heads.
absl::StatusOr<std::unique_ptr<Model>> make_gpt(const v1::GptSpec& spec);

}  // namespace paceline::model
