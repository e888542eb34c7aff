#include "runtime/tensor/initial_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "runtime/tensor/schedule.h"

namespace paceline::tensor {
namespace {

std::uint64_t fnv1a(std::string_view name) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

struct Model {
  GraphBuilder graph;
  ParameterLayout layout;
};

// Parameters of several pieces and of a few elements, none a multiple of what an offset is.
Model model() {
  Model model;
  GraphBuilder& graph = model.graph;
  Value x = graph.input({3});
  x = graph.linear(x, graph.parameter("normal", {300'001, 3}, Init::normal(0.5F)));
  x = graph.linear(x, graph.parameter("uniform", {2, 300'001}, Init::uniform(0.25F)),
                   graph.parameter("constant", {2}, Init::constant(7)));
  graph.softmax_cross_entropy(x);
  model.layout = *lay_out_parameters(graph);
  return model;
}

TEST(InitialWeights, AreADrawAfterTheOtherWhateverTheThreads) {
  const Model m = model();
  constexpr std::uint64_t kSeed = 42;
  std::vector<float> expected(m.layout.elements, 0.0F);
  for (const Parameter& p : m.layout.parameters) {
    Rng rng(kSeed, fnv1a(p.name));
    for (std::size_t i = 0; i < p.count; ++i) {
      float& w = expected[p.offset + i];
      if (p.name == "normal") w = 0.5F * rng.normal();
      if (p.name == "uniform") w = 0.25F * (2 * rng.uniform() - 1);
      if (p.name == "constant") w = 7;
    }
  }
  for (const int threads : {-1, 1, 2, 3, 64}) {
    std::vector<float> weights(m.layout.elements, -1.0F);
    fill_initial_weights(m.graph, m.layout, kSeed, threads, weights);
    EXPECT_EQ(std::memcmp(weights.data(), expected.data(), weights.size() * sizeof(float)), 0)
        << threads << " threads";
  }
}

TEST(InitialWeights, OnlyPaddingIsCleared) {
  const Model m = model();
  std::vector<float> vector(m.layout.elements, 1.0F);
  clear_padding(m.layout, vector);
  std::size_t ones = 0;
  for (const float x : vector) ones += x == 1.0F ? 1 : 0;
  EXPECT_EQ(ones, m.layout.trained_elements);
  EXPECT_LT(ones, vector.size());
}

}  // namespace
}  // namespace paceline::tensor
