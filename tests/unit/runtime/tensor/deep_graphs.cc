#include "tests/unit/runtime/tensor/deep_graphs.h"

#include "base/status.h"

namespace paceline::tensor {

namespace {

Value norm(GraphBuilder& g, const std::string& name, Value x) {
  const std::int64_t width = g.dims(x).back();
  return g.layer_norm(x, g.parameter(name + ".gain", {width}, Init::constant(1)),
                      g.parameter(name + ".bias", {width}, Init::constant(0)));
}

GraphBuilder mlp() {
  GraphBuilder g;
  Value h = g.input({24});
  for (int i = 0; i < 9; ++i) {
    const Value next = g.dense(str_cat("fc", i), h, 48);
    h = i % 3 == 0 ? g.relu(next) : i % 3 == 1 ? g.gelu(next) : g.tanh(next);
  }
  g.softmax_cross_entropy(g.dense("output", h, 5));
  return g;
}

// Pairs of convolutions with a residual path, and a pooling behind every third.
GraphBuilder cnn() {
  GraphBuilder g;
  Value h = g.conv("enter", g.input({2, 12, 12}), 8, 3, 1, 1);
  for (int i = 0; i < 6; ++i) {
    const Value inner = g.relu(g.conv(str_cat("inner", i), h, 8, 3, 1, 1));
    h = g.add(h, g.conv(str_cat("outer", i), inner, 8, 3, 1, 1));
    if (i % 3 == 2) h = g.max_pool2d(g.relu(h), 2, 2);
  }
  g.softmax_cross_entropy(g.dense("output", g.relu(g.dense("fc", g.flatten(h), 12)), 4));
  return g;
}

// What leaves the arena besides: inputs that are trained elsewhere, offsets, scores.
GraphBuilder gates() {
  GraphBuilder g;
  const Value x = g.trained_input({4, 6});
  Value h = g.reshape(x, {24});
  for (int i = 0; i < 6; ++i) {
    const Value gate = g.sigmoid(g.dense(str_cat("gate", i), h, 24));
    const Value value = g.tanh(g.reshape(g.dense(str_cat("value", i), h, 24), {6, 4}));
    h = g.add(g.multiply(g.reshape(value, {24}), gate), g.scale(h, 0.5F));
    h = norm(g, str_cat("norm", i), h);
  }
  g.sigmoid_cross_entropy(g.add(g.dense("output", h, 1), g.offset()));
  return g;
}

// Its loss reads the middle of the graph, too.
GraphBuilder autoencoder() {
  GraphBuilder g;
  const Value x = g.gelu(g.dense("enter", g.input({10}), 32));
  Value h = x;
  for (int i = 0; i < 6; ++i) h = g.tanh(g.dense(str_cat("fc", i), h, i == 2 ? 4 : 32));
  g.mean_squared_error(h, x);
  return g;
}

}  // namespace

GraphBuilder gpt_graph(const GptShape& shape) {
  GraphBuilder g;
  const Value table = g.parameter("table", {shape.vocabulary, shape.width}, Init::normal(0.3F));
  Value x = g.add(g.embedding(g.tokens(shape.time), table),
                  g.parameter("positions", {shape.time, shape.width}, Init::normal(0.3F)));
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const Value qkv = g.dense(str_cat("qkv", i), norm(g, str_cat("norm1.", i), x), 3 * shape.width);
    x = g.add(x, g.dense(str_cat("projection", i), g.causal_self_attention(qkv, shape.heads), shape.width));
    const Value up = g.dense(str_cat("up", i), norm(g, str_cat("norm2.", i), x), 4 * shape.width);
    x = g.add(x, g.dense(str_cat("down", i), g.gelu(up), shape.width));
  }
  g.softmax_cross_entropy(g.linear(norm(g, "norm", x), table));
  return g;
}

GraphBuilder random_graph(std::uint64_t seed) {
  Random random{Rng(seed, 77)};
  GraphBuilder g;
  constexpr std::int64_t kTime = 3;
  std::vector<Value> values{g.dense("enter", g.input({kTime, 7}), 16)};
  const std::int64_t operators = random.between(12, 40);
  for (std::int64_t i = 0; i < operators; ++i) {
    const auto recent = [&] {
      const auto back = static_cast<std::size_t>(random.between(1, random.between(1, 8)));
      return values[values.size() - std::min(back, values.size())];
    };
    const Value x = values.back();
    switch (random.between(0, 10)) {
      case 0:
      case 1:
        values.push_back(g.dense(str_cat("fc", i), x, 16));
        break;
      case 2:
        values.push_back(g.dense(str_cat("down", i), g.relu(g.dense(str_cat("up", i), x, 40)), 16));
        break;
      case 3:
        values.push_back(g.gelu(x));
        break;
      case 4:
        values.push_back(g.tanh(x));
        break;
      case 5:
        values.push_back(norm(g, str_cat("norm", i), x));
        break;
      case 6:
        values.push_back(g.multiply(x, g.sigmoid(recent())));
        break;
      case 7:
        values.push_back(g.causal_self_attention(g.dense(str_cat("qkv", i), x, 48), 2));
        break;
      case 8:
        values.push_back(g.scale(x, 0.5F));
        break;
      case 9:
        values.push_back(g.reshape(g.tanh(g.reshape(x, {kTime * 16})), {kTime, 16}));
        break;
      default:
        values.push_back(g.add(x, recent()));
    }
  }
  g.softmax_cross_entropy(
      g.dense("output", norm(g, "norm", g.add(values.back(), values[values.size() / 2])), 5));
  return g;
}

std::vector<DeepGraph> deep_graphs() {
  return {{"gpt", gpt_graph({.layers = 4, .heads = 2, .width = 16, .time = 6, .vocabulary = 13})},
          {"mlp", mlp()},
          {"cnn", cnn()},
          {"gates", gates()},
          {"autoencoder", autoencoder()}};
}

}  // namespace paceline::tensor
