#pragma once

// Tokens that follow others, one after the other, each chosen by the scores of what follows all before it.

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/generate/sampler.h"
#include "runtime/generate/scorer.h"

namespace paceline::generate {

struct Request {
  std::vector<std::int32_t> prompt;  // at least one token
  std::int64_t tokens = 1;           // so many more
  Sampling sampling;
  std::int64_t below = 0;  // only tokens below it are made; 0: all of the vocabulary
  // The same request gives the same tokens on the same device, whatever was asked for before. Samples of one
  // seed have chances of their own.
  std::uint64_t seed = 1;
  std::uint64_t sample = 0;
};

// INVALID_ARGUMENT: the prompt is empty, or has a token that the vocabulary lacks; check(sampling).
// `on_token` hears of each token once it is chosen; false ends it, which is no error. Else the errors of the
// scorer and of next_token().
absl::Status generate(Scorer& scorer, const Request& request,
                      absl::FunctionRef<bool(std::int32_t token)> on_token);

}  // namespace paceline::generate
