#include "runtime/cuda/embedding_plan.h"

#include <algorithm>

#include "base/text.h"

namespace paceline::cuda {

// A counting sort: begins[t] is where token t's rows begin; once they are placed, where they end.
absl::Status plan_embedding(std::span<const std::int32_t> tokens, std::uint32_t vocabulary,
                            EmbeddingPlan& plan) {
  std::vector<std::uint32_t>& begins = plan.begins;
  begins.assign(std::size_t{vocabulary} + 1, 0);
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    if (tokens[r] < 0 || static_cast<std::uint32_t>(tokens[r]) >= vocabulary)
      return absl::InvalidArgumentError(
          str_cat("token ", tokens[r], " of row ", r, " is not in [0, ", vocabulary, ")"));
    ++begins[static_cast<std::size_t>(tokens[r]) + 1];
  }
  for (std::size_t t = 0; t < vocabulary; ++t) begins[t + 1] += begins[t];
  plan.order.resize(tokens.size());
  for (std::size_t r = 0; r < tokens.size(); ++r)
    plan.order[begins[static_cast<std::size_t>(tokens[r])]++] = static_cast<std::uint32_t>(r);

  plan.pieces.clear();
  plan.joins.clear();
  plan.slots = 0;
  for (std::uint32_t token = 0; token < vocabulary; ++token) {
    const std::uint32_t begin = token == 0 ? 0 : begins[token - 1], end = begins[token];
    if (begin == end) continue;
    if (end - begin <= kMostPieceRows) {
      plan.pieces.push_back({.token = token, .begin = begin, .end = end, .slot = -1});
      continue;
    }
    const std::uint32_t first = plan.slots;
    for (std::uint32_t at = begin; at < end; at += kMostPieceRows) {
      plan.pieces.push_back({.token = token,
                             .begin = at,
                             .end = std::min(at + kMostPieceRows, end),
                             .slot = static_cast<std::int32_t>(plan.slots++)});
    }
    plan.joins.push_back({.token = token, .first = first, .end = plan.slots});
  }
  return absl::OkStatus();
}

}  // namespace paceline::cuda
