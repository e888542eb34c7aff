#pragma once

// Which token comes next, by the scores of all tokens. Pure: chance is an argument.

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace paceline::generate {

// Probabilities are the softmax of score / temperature, of the tokens that `top_k` and then `top_p` leave.
struct Sampling {
  double temperature = 1;  // 0: the token with the highest score, of equal ones the first
  std::int64_t top_k = 0;  // only so many of the likeliest; 0: all
  double top_p = 1;        // only as many of the likeliest as have this share of the probability together
};

// INVALID_ARGUMENT: temperature below 0 or no number, top_k below 0, top_p not in (0, 1].
absl::Status check(const Sampling& sampling);

// `chance` in [0, 1) chooses: likelier tokens own larger parts of it. FAILED_PRECONDITION where a score is no
// number: the weights are of a training that diverged. REQUIRES: check() is OK; at least one score.
absl::StatusOr<std::int32_t> next_token(std::span<const float> scores, const Sampling& sampling,
                                        double chance);

}  // namespace paceline::generate
