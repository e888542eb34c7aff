#pragma once

// A small GPT-2 (Radford et al. 2019): token and position embeddings, `layers` pre-norm blocks of causal
// self-attention and a GELU network of four times the width, a last layer norm, and a head that is the token
// embedding itself. No dropout.
//
// Starts as GPT-2 does: normal, deviation 0.02, and 0.02 / sqrt(2 layers) for the two projections of a block
// that add to the residual path; biases 0, gains 1. Weight decay applies to matrices and embeddings.
// Parameters are named and shaped as those of the PyTorch model in benchmarks/peers/gpt_torch.py: its
// state_dict and our model files exchange weights.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/model/model.h"

namespace paceline::model {

// INVALID_ARGUMENT names the field: all >= 1, and width a multiple of heads.
absl::StatusOr<std::unique_ptr<Model>> make_gpt(const v1::GptSpec& spec);

// The graph that scores what follows: of samples of the first `positions` positions, the scores of all tokens
// to come after the position that the sample's label says. Its parameters are those of the model, in the same
// order, whatever `positions` is: one vector of weights serves all. INVALID_ARGUMENT: as above, or
// `positions` is not 1 to block_size.
absl::Status build_gpt_scores(const v1::GptSpec& spec, std::int64_t positions, tensor::GraphBuilder& graph);

// The same for generating text with a key/value cache (tensor/compiler.h) of block_size positions, of one
// sample. A prefill's attention keeps the keys and values of its positions in the cache; a decode step has
// one token, at the position that its label says, which sees the positions before it in the cache, and scores
// what follows it. The step is that of any position: its graph is of no length.
absl::Status build_gpt_prefill(const v1::GptSpec& spec, std::int64_t positions, tensor::GraphBuilder& graph);
absl::Status build_gpt_step(const v1::GptSpec& spec, tensor::GraphBuilder& graph);

}  // namespace paceline::model
