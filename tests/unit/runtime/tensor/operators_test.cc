// Every operator and every path of its gradient, on random shapes: the loss against the oracle's plain loops,
// the gradients against central differences of the oracle, in double precision. A NaN fails every comparison,
// since each is written as "difference <= bound".

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "oracle.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/cpu/cpu_device.h"

namespace paceline::tensor {
namespace {

constexpr std::uint64_t kSeed = 20260131;

struct Random {
  Rng rng;
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
  }
};

using Build = std::function<void(GraphBuilder&, Random&)>;

struct Case {
  std::string name;
  Build build;
};

constexpr Init kWeights = {Init::Kind::kNormal, 0.4F};

Value normal(GraphBuilder& g, const std::string& name, const Dims& dims) {
  return g.parameter(name, dims, kWeights);
}

void finish(GraphBuilder& g, Value h, std::int64_t classes = 4) {
  g.softmax_cross_entropy(g.dense("output", g.flatten(h), classes, kWeights));
}

// A hidden value {3, n, n} that has a gradient.
Value image(GraphBuilder& g, Random& r, std::int64_t channels, std::int64_t low = 5, std::int64_t high = 9) {
  const Value x = g.input({r.between(1, 4), r.between(low, high), r.between(low, high)});
  return g.conv2d(x, normal(g, "first.weight", {channels, g.dims(x)[0], 3, 3}),
                  normal(g, "first.bias", {channels}), 1, 1);
}

Value vector(GraphBuilder& g, Random& r) {
  return g.dense("first", g.input({r.between(2, 20)}), r.between(2, 40), kWeights);
}

Value sequence(GraphBuilder& g, Random& r, std::int64_t width) {
  const std::int64_t vocabulary = r.between(3, 9);
  const Value tokens = g.tokens(r.between(2, 7));
  const Value h = g.embedding(tokens, normal(g, "table", {vocabulary, width}));
  return g.add(h, normal(g, "positions", g.dims(h)));
}

Build unary(Value (GraphBuilder::*op)(Value)) {
  return [op](GraphBuilder& g, Random& r) { finish(g, (g.*op)(vector(g, r))); };
}
Build unary_on_image(Value (GraphBuilder::*op)(Value), std::int64_t channels) {
  return [op, channels](GraphBuilder& g, Random& r) { finish(g, (g.*op)(image(g, r, channels))); };
}
Build convolution(std::int64_t channels, std::int64_t filters, std::int64_t kernel, std::int64_t stride,
                  std::int64_t padding, bool bias) {
  return [=](GraphBuilder& g, Random& r) {
    const Value h = image(g, r, channels);
    const Value b = bias ? normal(g, "conv.bias", {filters}) : Value{};
    finish(g, g.conv2d(h, normal(g, "conv.weight", {filters, channels, kernel, kernel}), b, stride, padding));
  };
}
Build pooling(std::int64_t channels, std::int64_t window, std::int64_t stride, bool relu) {
  return [=](GraphBuilder& g, Random& r) {
    const Value h = image(g, r, channels);
    finish(g, g.max_pool2d(relu ? g.relu(h) : h, window, stride));
  };
}

std::vector<Case> cases() {
  return {
      {"linear", [](GraphBuilder& g, Random& r) { finish(g, vector(g, r)); }},
      {"linear_without_bias",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         finish(g, g.linear(h, normal(g, "w", {r.between(1, 30), g.dims(h)[0]})));
       }},
      {"linear_on_positions",
       [](GraphBuilder& g, Random& r) {
         const Value x = g.input({r.between(2, 5), r.between(2, 9)});
         g.softmax_cross_entropy(
             g.dense("b", g.relu(g.dense("a", x, r.between(2, 20), kWeights)), r.between(2, 6), kWeights));
       }},
      {"linear_of_a_flat_image",
       [](GraphBuilder& g, Random& r) {
         finish(g, g.input({r.between(1, 3), r.between(2, 5), r.between(2, 5)}));
       }},
      {"one_weight_used_twice",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         const std::int64_t n = g.dims(h)[0];
         const Value w = normal(g, "shared.weight", {n, n});
         finish(g, g.linear(g.tanh(g.linear(h, w)), w));
       }},
      {"one_layer_used_twice_behind_relu",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         const std::int64_t n = g.dims(h)[0];
         finish(g, g.dense("shared", g.relu(g.dense("shared", h, n, kWeights)), n, kWeights));
       }},
      {"relu_behind_linear", unary(&GraphBuilder::relu)},
      {"relu_alone", [](GraphBuilder& g, Random& r) { finish(g, g.relu(g.scale(vector(g, r), 2))); }},
      {"relu_of_a_value_used_twice",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         finish(g, g.add(g.relu(h), h));
       }},
      {"gelu", unary(&GraphBuilder::gelu)},
      {"tanh", unary(&GraphBuilder::tanh)},
      {"sigmoid", unary(&GraphBuilder::sigmoid)},
      {"scale", [](GraphBuilder& g, Random& r) { finish(g, g.scale(vector(g, r), -1.75F)); }},
      {"add_of_one_value_to_itself",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         finish(g, g.add(h, h));
       }},
      {"three_uses_of_one_value",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         finish(g, g.add(g.add(g.tanh(h), g.sigmoid(h)), h));
       }},
      {"multiply",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         finish(g, g.multiply(g.tanh(h), g.sigmoid(h)));
       }},
      {"multiply_with_the_input",
       [](GraphBuilder& g, Random& r) {
         const Value x = g.input({r.between(2, 12)});
         finish(g, g.multiply(g.dense("first", x, g.dims(x)[0], kWeights), x));
       }},
      {"add_a_parameter",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         finish(g, g.add(h, normal(g, "offset", g.dims(h))));
       }},
      {"reshape_between",
       [](GraphBuilder& g, Random& r) {
         const std::int64_t n = r.between(2, 5);
         const Value h = g.dense("first", g.input({7}), 3 * n, kWeights);
         g.softmax_cross_entropy(g.dense("output", g.tanh(g.reshape(h, {3, n})), 4, kWeights));
       }},
      {"reshape_of_an_image",
       [](GraphBuilder& g, Random& r) {
         const Value h = image(g, r, 16);
         const Dims d = g.dims(h);
         finish(g, g.tanh(g.reshape(h, {d[0], d[1] * d[2]})));
       }},
      {"conv_few_channels", convolution(3, 5, 3, 1, 1, true)},
      {"conv_blocks", convolution(16, 32, 3, 1, 1, true)},
      {"conv_uneven", convolution(17, 10, 3, 1, 1, true)},
      {"conv_stride", convolution(16, 16, 3, 2, 1, true)},
      {"conv_no_padding_no_bias", convolution(8, 16, 3, 1, 0, false)},
      {"conv_5x5", convolution(4, 16, 5, 1, 2, true)},
      {"conv_1x1", convolution(16, 16, 1, 1, 0, true)},
      {"conv_stride_3", convolution(3, 4, 2, 3, 1, false)},
      {"conv_then_relu_then_conv",
       [](GraphBuilder& g, Random& r) {
         finish(g, g.relu(g.conv2d(g.relu(image(g, r, 16)), normal(g, "conv.weight", {16, 16, 3, 3}),
                                   normal(g, "conv.bias", {16}), 1, 1)));
       }},
      {"residual_of_convs",
       [](GraphBuilder& g, Random& r) {
         const Value h = image(g, r, 16);
         const Value c = g.conv2d(g.relu(h), normal(g, "conv.weight", {16, 16, 3, 3}), {}, 1, 1);
         finish(g, g.max_pool2d(g.add(h, c), 2, 2));
       }},
      {"tanh_on_an_image", unary_on_image(&GraphBuilder::tanh, 16)},
      {"gelu_on_an_uneven_image", unary_on_image(&GraphBuilder::gelu, 5)},
      {"sigmoid_on_an_image", unary_on_image(&GraphBuilder::sigmoid, 16)},
      {"pool_2", pooling(16, 2, 2, false)},
      {"pool_2_behind_relu", pooling(16, 2, 2, true)},
      {"pool_2_few_channels", pooling(5, 2, 2, true)},
      {"pool_3_overlapping", pooling(16, 3, 2, true)},
      {"pool_3_overlapping_without_relu", pooling(3, 3, 1, false)},
      {"pool_2_with_gaps", pooling(8, 2, 3, true)},
      {"pool_of_the_input",
       [](GraphBuilder& g, Random& r) {
         finish(g, g.max_pool2d(g.input({2, r.between(4, 7), 6}), 2, 2));
       }},
      {"relu_pooled_and_used",
       [](GraphBuilder& g, Random& r) {
         const Value h = g.relu(g.max_pool2d(g.relu(image(g, r, 16)), 2, 2));
         finish(g, g.add(h, g.tanh(h)));
       }},
      {"embedding", [](GraphBuilder& g, Random& r) { finish(g, sequence(g, r, r.between(1, 12))); }},
      {"tied_head",
       [](GraphBuilder& g, Random& r) {
         const Value table = normal(g, "table", {r.between(3, 9), 8});
         const Value h = g.embedding(g.tokens(r.between(2, 6)), table);
         g.softmax_cross_entropy(g.linear(g.tanh(h), table));
       }},
      {"layer_norm",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         finish(g, g.layer_norm(h, normal(g, "gain", g.dims(h)), normal(g, "bias", g.dims(h))));
       }},
      {"layer_norm_on_a_residual_path",
       [](GraphBuilder& g, Random& r) {
         const Value h = sequence(g, r, 8);
         const Value n = g.layer_norm(h, normal(g, "gain", {8}), normal(g, "bias", {8}));
         finish(g, g.add(h, g.dense("inner", n, 8, kWeights)));
       }},
      {"attention_one_head",
       [](GraphBuilder& g, Random& r) { finish(g, g.causal_self_attention(sequence(g, r, 12), 1)); }},
      {"attention_heads",
       [](GraphBuilder& g, Random& r) {
         const std::int64_t heads = r.between(2, 4);
         const Value h = sequence(g, r, 8);
         const std::int64_t width = heads * r.between(2, 5);
         g.softmax_cross_entropy(g.dense(
             "out", g.causal_self_attention(g.dense("qkv", h, 3 * width, kWeights), heads), 5, kWeights));
       }},
      {"sigmoid_cross_entropy",
       [](GraphBuilder& g, Random& r) {
         g.sigmoid_cross_entropy(g.dense("output", vector(g, r), 1, kWeights));
       }},
      {"a_trained_input",
       [](GraphBuilder& g, Random& r) {
         const Value x = g.trained_input({r.between(2, 20)});
         finish(g, g.relu(g.dense("first", x, r.between(2, 40), kWeights)));
       }},
      {"a_trained_input_used_twice",
       [](GraphBuilder& g, Random& r) {
         const Value x = g.trained_input({r.between(2, 20)});
         finish(g, g.multiply(g.dense("first", x, g.dims(x)[0], kWeights), g.tanh(x)));
       }},
      {"a_trained_image",
       [](GraphBuilder& g, Random& r) {
         const Value x = g.trained_input({3, r.between(5, 9), r.between(5, 9)});
         finish(g, g.conv2d(x, normal(g, "conv.weight", {16, 3, 3, 3}), {}, 1, 1));
       }},
      {"trained_input_and_offset",
       [](GraphBuilder& g, Random& r) {
         const Value h = g.relu(g.dense("first", g.trained_input({r.between(2, 20)}), 7, kWeights));
         g.sigmoid_cross_entropy(g.add(g.dense("output", h, 1, kWeights), g.offset()));
       }},
      {"squared_error",
       [](GraphBuilder& g, Random& r) {
         const Value x = g.input({r.between(2, 9)});
         g.mean_squared_error(
             g.dense("decode", g.tanh(g.dense("encode", x, 3, kWeights)), g.dims(x)[0], kWeights), x);
       }},
      {"squared_error_of_two_values",
       [](GraphBuilder& g, Random& r) {
         const Value x = g.input({r.between(2, 9)});
         g.mean_squared_error(g.dense("a", x, 6, kWeights), g.tanh(g.dense("b", x, 6, kWeights)));
       }},
  };
}

// A compiled case with random weights and batch, and the oracle on the same numbers.
class Trial {
 public:
  Trial(const Case& c, std::uint64_t stream, CompileOptions options) : random_{Rng(kSeed, stream)} {
    c.build(graph_, random_);
    EXPECT_TRUE(graph_.status().ok()) << graph_.status();
    oracle_ = std::make_unique<Oracle>(graph_);
    auto program = compile(graph_, *device_, options);
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    weights_.assign(program_->parameters().elements, 0);
    gradients_.assign(weights_.size(), -7);
    program_->bind(weights_, gradients_);
    program_->initialize(kSeed, weights_);
    program_->weights_changed();
    fill_batch();
    read_weights();
  }

  Program& program() { return *program_; }
  Oracle& oracle() { return *oracle_; }
  std::vector<float>& weights() { return weights_; }
  std::vector<float>& gradients() { return gradients_; }
  Random& random() { return random_; }

  void read_weights() {
    for (const auto& p : program_->parameters().parameters) {
      oracle_->parameters[p.name] = {weights_.begin() + static_cast<std::ptrdiff_t>(p.offset),
                                     weights_.begin() + static_cast<std::ptrdiff_t>(p.offset + p.count)};
    }
  }

  // The oracle's derivative by one weight.
  double difference(const Parameter& p, std::size_t element, std::int64_t rows) {
    return difference(oracle_->parameters.at(p.name)[element], rows);
  }
  // By one number of the oracle's.
  double difference(double& w, std::int64_t rows) {
    constexpr double kStep = 1e-5;
    const double saved = w;
    w = saved + kStep;
    const double above = oracle_->loss_sum(rows);
    w = saved - kStep;
    const double below = oracle_->loss_sum(rows);
    w = saved;
    return (above - below) / (2 * kStep);
  }

 private:
  void fill_batch() {
    const BatchMemory batch = program_->batch();
    for (float& v : batch.inputs) v = random_.rng.normal();
    for (float& v : batch.offsets) v = random_.rng.normal();
    std::int64_t vocabulary = 0;
    for (const Node& node : graph_.nodes()) {
      if (node.kind == OpKind::kEmbedding) vocabulary = graph_.dims(node.inputs[1])[0];
    }
    for (auto& t : batch.tokens) t = static_cast<std::int32_t>(random_.between(0, vocabulary - 1));
    const Node& loss = graph_.nodes()[static_cast<std::size_t>(graph_.loss().id)];
    const std::int64_t classes =
        loss.kind == OpKind::kSigmoidCrossEntropy ? 2 : graph_.dims(loss.inputs[0]).back();
    for (auto& l : batch.labels) l = static_cast<std::int32_t>(random_.between(0, classes - 1));
    oracle_->inputs.assign(batch.inputs.begin(), batch.inputs.end());
    oracle_->offsets.assign(batch.offsets.begin(), batch.offsets.end());
    oracle_->tokens.assign(batch.tokens.begin(), batch.tokens.end());
    oracle_->labels.assign(batch.labels.begin(), batch.labels.end());
  }

  std::unique_ptr<Device> device_ = make_cpu_device({});
  Random random_;
  GraphBuilder graph_;
  std::unique_ptr<Oracle> oracle_;
  std::unique_ptr<Program> program_;
  std::vector<float> weights_;
  std::vector<float> gradients_;
};

class Operators : public testing::TestWithParam<Case> {};

constexpr std::int64_t kMaxRows = 5;
constexpr int kRounds = 2;
constexpr std::size_t kDerivativesPerParameter = 12;

TEST_P(Operators, LossAndGradientsAreTheOracles) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    Trial run(GetParam(), static_cast<std::uint64_t>(round), {kMaxRows, Precision::kF32, Mode::kTraining});
    const std::int64_t rows = round == 0 ? kMaxRows : run.random().between(1, kMaxRows - 1);
    const ForwardResult result = run.program().forward(rows);
    const double expected = run.oracle().loss_sum(rows);
    EXPECT_LE(std::abs(result.loss_sum - expected), 2e-5 * (1 + std::abs(expected)));
    if (result.label_count > 0) {
      EXPECT_EQ(result.correct, run.oracle().correct(rows));
    }

    constexpr float kScale = 0.5F;
    run.program().backward(kScale, false, nullptr);
    for (const auto& p : run.program().parameters().parameters) {
      for (std::size_t k = 0; k < std::min(p.count, kDerivativesPerParameter); ++k) {
        const std::size_t e = p.count <= kDerivativesPerParameter ? k : run.random().rng.below(p.count);
        const double derivative = 0.5 * run.difference(p, e, rows);
        EXPECT_LE(std::abs(run.gradients()[p.offset + e] - derivative), 1e-4 * (1 + std::abs(derivative)))
            << p.name << " element " << e;
      }
    }
  }
}

// gradient(scale) twice, the second time added, is gradient(2 * scale); the padding stays zero.
TEST_P(Operators, GradientsAccumulate) {
  Trial run(GetParam(), 7, {3, Precision::kF32, Mode::kTraining});
  run.program().forward(3);
  run.program().backward(2, false, nullptr);
  const std::vector<float> whole = run.gradients();
  run.program().forward(3);
  run.program().backward(1, false, nullptr);
  run.program().forward(3);
  run.program().backward(1, true, nullptr);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_LE(std::abs(run.gradients()[i] - whole[i]), 1e-5F * (1 + std::abs(whole[i]))) << "element " << i;
  }
  for (const auto& p : run.program().parameters().parameters) {
    for (std::size_t e = p.offset + p.count; e % 16 != 0; ++e) EXPECT_EQ(run.gradients()[e], 0) << p.name;
  }
}

// Of inputs that are trained elsewhere: of each pass by itself, whatever parameters' gradients do.
TEST_P(Operators, GradientsOfInputsAreTheOracles) {
  Trial run(GetParam(), 11, {kMaxRows, Precision::kF32, Mode::kTraining});
  const std::int64_t rows = kMaxRows - 1;
  for (const bool accumulate : {false, true}) {
    run.program().forward(rows);
    run.program().backward(2, accumulate, nullptr);
  }
  const BatchMemory batch = run.program().batch();
  const auto compare = [&](std::span<const float> gradients, std::vector<double>& values) {
    const std::size_t used = gradients.size() / kMaxRows * static_cast<std::size_t>(rows);
    for (std::size_t k = 0; k < std::min<std::size_t>(used, 40); ++k) {
      const std::size_t e = used <= 40 ? k : run.random().rng.below(used);
      const double derivative = 2 * run.difference(values[e], rows);
      EXPECT_LE(std::abs(gradients[e] - derivative), 1e-4 * (1 + std::abs(derivative))) << "element " << e;
    }
  };
  const bool trained = GetParam().name.find("trained") != std::string::npos;
  EXPECT_EQ(batch.input_gradients.size(), trained ? batch.inputs.size() : 0);
  compare(batch.input_gradients, run.oracle().inputs);
  EXPECT_EQ(batch.offset_gradients.size(), batch.offsets.size());
  compare(batch.offset_gradients, run.oracle().offsets);
}

// Exact, because a ranking is made from them.
TEST(SigmoidCrossEntropy, LeavesTheLogits) {
  GraphBuilder graph;
  graph.sigmoid_cross_entropy(graph.add(
      graph.linear(graph.input({1}), graph.parameter("w", {1, 1}, Init::constant(2))), graph.offset()));
  const auto device = make_cpu_device({});
  for (const Mode mode : {Mode::kTraining, Mode::kInference}) {
    auto program = compile(graph, *device, {3, Precision::kF32, mode});
    ASSERT_TRUE(program.ok()) << program.status();
    std::vector<float> weights((*program)->parameters().elements), gradients(weights.size());
    (*program)->bind(weights, gradients);
    (*program)->initialize(1, weights);
    const BatchMemory batch = (*program)->batch();
    const float inputs[] = {1, -200, 0}, offsets[] = {0.5F, 0, 0};
    const std::int32_t labels[] = {1, 1, 0};
    std::copy_n(inputs, 3, batch.inputs.begin());
    std::copy_n(offsets, 3, batch.offsets.begin());
    std::copy_n(labels, 3, batch.labels.begin());
    const ForwardResult result = (*program)->forward(3);
    EXPECT_EQ(std::vector<float>(batch.scores.begin(), batch.scores.end()),
              (std::vector<float>{2.5F, -400, 0}));
    EXPECT_NEAR(result.loss_sum, std::log1p(std::exp(-2.5)) + 400 + std::log(2), 1e-9);
    EXPECT_EQ(result.correct, 2);
    EXPECT_EQ(batch.offset_gradients.size(), mode == Mode::kTraining ? 3 : 0);
  }
}

TEST(SigmoidCrossEntropy, NanReachesTheLoss) {
  GraphBuilder graph;
  graph.sigmoid_cross_entropy(graph.dense("w", graph.input({1}), 1));
  const auto device = make_cpu_device({});
  auto program = compile(graph, *device, {1, Precision::kF32, Mode::kInference});
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<float> weights((*program)->parameters().elements, NAN);
  (*program)->bind(weights, {});
  const ForwardResult result = (*program)->forward(1);
  EXPECT_TRUE(std::isnan(result.loss_sum));
  EXPECT_EQ(result.correct, 0);
}

// The ranges are disjoint, cover the vector, and nothing changes in one after it was declared final.
TEST_P(Operators, RangesAreFinalWhenTheyAreReady) {
  Trial run(GetParam(), 8, {3, Precision::kF32, Mode::kTraining});
  run.program().forward(2);
  std::vector<float> at_ready(run.gradients().size(), -1);
  std::vector<int> covered(at_ready.size(), 0);
  run.program().backward(1, false, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      at_ready[i] = run.gradients()[i];
      ++covered[i];
    }
  });
  EXPECT_EQ(covered, std::vector<int>(covered.size(), 1));
  EXPECT_EQ(at_ready, run.gradients());
}

TEST_P(Operators, InferenceGivesTheSameLoss) {
  Trial training(GetParam(), 9, {4, Precision::kF32, Mode::kTraining});
  Trial inference(GetParam(), 9, {4, Precision::kF32, Mode::kInference});
  const ForwardResult a = training.program().forward(4);
  const ForwardResult b = inference.program().forward(4);
  EXPECT_LE(std::abs(a.loss_sum - b.loss_sum), 1e-6 * (1 + std::abs(a.loss_sum)));
  EXPECT_EQ(a.correct, b.correct);
  EXPECT_EQ(a.label_count, b.label_count);
}

// Products of bf16 operands: 8 bits, so 2^-8 relative for each operand; sums of a few dozen such.
TEST_P(Operators, Bf16IsNearTheOracle) {
  Trial run(GetParam(), 10, {4, Precision::kBF16, Mode::kTraining});
  const ForwardResult result = run.program().forward(4);
  const double expected = run.oracle().loss_sum(4);
  EXPECT_LE(std::abs(result.loss_sum - expected), 0.05 * (1 + std::abs(expected)));
  run.program().backward(1, false, nullptr);
  double error = 0;
  double norm = 0;
  for (const auto& p : run.program().parameters().parameters) {
    for (std::size_t k = 0; k < std::min(p.count, kDerivativesPerParameter); ++k) {
      const std::size_t e = p.count <= kDerivativesPerParameter ? k : run.random().rng.below(p.count);
      const double derivative = run.difference(p, e, 4);
      error += (run.gradients()[p.offset + e] - derivative) * (run.gradients()[p.offset + e] - derivative);
      norm += derivative * derivative;
    }
  }
  EXPECT_LE(std::sqrt(error), 0.1 * std::sqrt(norm) + 1e-3);
}

INSTANTIATE_TEST_SUITE_P(All, Operators, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace paceline::tensor
