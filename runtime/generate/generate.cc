#include "runtime/generate/generate.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "base/status.h"

namespace paceline::generate {

namespace {

// The first of the streams of samples.
constexpr std::uint64_t kSampleStreams = 0x73616d706c650000u;

// In [0, 1), 53 bits.
double chance(Rng& rng) {
  return std::ldexp(static_cast<double>(rng.next_u64() >> 11), -53);
}

absl::Status check_prompt(const std::vector<std::int32_t>& prompt, std::int64_t vocabulary) {
  if (prompt.empty()) return absl::InvalidArgumentError("the prompt is empty; it must have a token");
  for (const std::int32_t token : prompt) {
    if (token >= 0 && token < vocabulary) continue;
    return absl::InvalidArgumentError(
        str_cat("the prompt has token ", token, "; allowed: 0 to ", vocabulary - 1));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status generate(Scorer& scorer, const Request& request,
                      absl::FunctionRef<bool(std::int32_t token)> on_token) {
  PL_RETURN_IF_ERROR(check(request.sampling));
  PL_RETURN_IF_ERROR(check_prompt(request.prompt, scorer.spec().vocabulary_size()));
  Rng rng(request.seed, kSampleStreams + request.sample);
  std::int32_t token = 0;
  for (std::int64_t made = 0; made < request.tokens; ++made) {
    PL_ASSIGN_OR_RETURN(std::span<const float> scores,
                        made == 0 ? scorer.begin(request.prompt) : scorer.next(token));
    if (request.below > 0)
      scores = scores.first(std::min(scores.size(), static_cast<std::size_t>(request.below)));
    PL_ASSIGN_OR_RETURN(token, next_token(scores, request.sampling, chance(rng)));
    if (!on_token(token)) return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace paceline::generate
