#include "runtime/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/status.h"

namespace paceline::generate {

absl::Status check(const Sampling& sampling) {
  if (!(sampling.temperature >= 0) || !std::isfinite(sampling.temperature))
    return absl::InvalidArgumentError(str_cat("temperature ", sampling.temperature, "; allowed: 0 and up"));
  if (sampling.top_k < 0)
    return absl::InvalidArgumentError(
        str_cat("top-k ", sampling.top_k, "; allowed: 1 and up, or 0 for all tokens"));
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    return absl::InvalidArgumentError(str_cat("top-p ", sampling.top_p, "; allowed: above 0, up to 1"));
  return absl::OkStatus();
}

absl::StatusOr<std::int32_t> next_token(std::span<const float> scores, const Sampling& sampling,
                                        double chance) {
  PL_CHECK(!scores.empty() && chance >= 0 && chance < 1, "there is something to choose from, and a chance");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool numbers = std::all_of(scores.begin(), scores.end(), [](float s) { return s < kInfinity; });
  const auto best = std::max_element(scores.begin(), scores.end());
  if (!numbers || *best == -kInfinity) {
    return absl::FailedPreconditionError(
        "the model's scores are no numbers: its weights are those of a training that diverged");
  }
  if (sampling.temperature == 0) return static_cast<std::int32_t>(best - scores.begin());

  std::vector<std::int32_t> tokens(scores.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto score = [&](std::int32_t token) { return scores[static_cast<std::size_t>(token)]; };
  const auto all = static_cast<std::int64_t>(tokens.size());
  const std::int64_t kept = sampling.top_k > 0 ? std::min(sampling.top_k, all) : all;
  if (kept < all || sampling.top_p < 1) {
    std::partial_sort(
        tokens.begin(), tokens.begin() + kept, tokens.end(),
        [&](std::int32_t a, std::int32_t b) { return score(a) != score(b) ? score(a) > score(b) : a < b; });
    tokens.resize(static_cast<std::size_t>(kept));
  }
  // up_to[i]: the weights of tokens 0 to i together.
  std::vector<double> up_to;
  double sum = 0;
  for (const std::int32_t token : tokens) {
    sum += std::exp((static_cast<double>(score(token)) - static_cast<double>(*best)) / sampling.temperature);
    up_to.push_back(sum);
  }
  if (sampling.top_p < 1) {
    const auto enough = std::lower_bound(up_to.begin(), up_to.end(), sampling.top_p * sum);
    if (enough != up_to.end()) up_to.erase(enough + 1, up_to.end());
  }
  const auto chosen = std::upper_bound(up_to.begin(), up_to.end(), chance * up_to.back());
  const auto last = up_to.end() - 1;  // a product may round up to all of it
  return tokens[static_cast<std::size_t>(std::min(chosen, last) - up_to.begin())];
}

}  // namespace paceline::generate
