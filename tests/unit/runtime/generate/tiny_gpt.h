#pragma once

// A gpt with random weights, and the oracle's plain loops on the same.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "runtime/generate/scorer.h"
#include "runtime/model/gpt.h"
#include "tests/unit/runtime/tensor/oracle.h"

namespace paceline::generate {

inline constexpr std::uint64_t kSeed = 20261124;

struct TinyGpt {
  // 80 positions: passes of 32, 64 and 80.
  explicit TinyGpt(std::int64_t block = 80, std::int64_t vocabulary = 13) {
    spec.set_layers(2);
    spec.set_heads(2);
    spec.set_width(8);
    spec.set_block_size(block);
    spec.set_vocabulary_size(vocabulary);
    layout = weights_layout(spec).value();
    weights.resize(layout.elements);
    Rng rng(kSeed, 1);
    // Gains near 1 and small biases: what comes next hangs on all of the tokens.
    for (const tensor::Parameter& parameter : layout.parameters) {
      const bool matrix = parameter.dims.size() == 2, gain = !matrix && parameter.name.ends_with(".weight");
      for (std::size_t i = 0; i < parameter.count; ++i)
        weights[parameter.offset + i] = (gain ? 1 : 0) + (matrix ? 0.5F : 0.1F) * rng.normal();
    }
  }

  // Of the last block of `tokens`, by a graph of the whole block.
  std::vector<double> scores_after(std::vector<std::int32_t> tokens) const {
    const auto block = static_cast<std::size_t>(spec.block_size());
    if (tokens.size() > block)
      tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(block));
    tensor::GraphBuilder graph;
    EXPECT_TRUE(model::build_gpt_scores(spec, spec.block_size(), graph).ok());
    tensor::Oracle oracle(graph);
    for (const tensor::Parameter& parameter : layout.parameters) {
      const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(parameter.offset);
      oracle.parameters[parameter.name] = {begin, begin + static_cast<std::ptrdiff_t>(parameter.count)};
    }
    oracle.labels = {static_cast<std::int32_t>(tokens.size() - 1)};
    tokens.resize(block, 1);  // what comes behind must not matter
    oracle.tokens = tokens;
    return oracle.scores(1);
  }

  v1::GptSpec spec;
  tensor::ParameterLayout layout;
  std::vector<float> weights;
};

inline std::vector<std::int32_t> some_tokens(std::size_t count, std::int64_t vocabulary,
                                             std::uint64_t stream) {
  Rng rng(kSeed, stream);
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens)
    token = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(vocabulary)));
  return tokens;
}

}  // namespace paceline::generate
