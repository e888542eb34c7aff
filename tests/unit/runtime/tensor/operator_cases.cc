#include "tests/unit/runtime/tensor/operator_cases.h"

namespace paceline::tensor {
namespace {

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

}  // namespace

std::vector<Case> operator_cases() {
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
      {"gelu_between_layers",  // of whole vectors
       [](GraphBuilder& g, Random& r) {
         const Value up = g.dense("up", vector(g, r), 8 * r.between(1, 4), kWeights);
         finish(g, g.tanh(g.dense("down", g.gelu(up), 8, kWeights)));
       }},
      {"gelu_of_a_product_without_bias",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         finish(g, g.gelu(g.linear(h, normal(g, "w", {16, g.dims(h)[0]}))));
       }},
      {"gelu_of_a_value_used_twice",
       [](GraphBuilder& g, Random& r) {
         const Value h = g.dense("up", vector(g, r), 16, kWeights);
         finish(g, g.add(g.gelu(h), h));
       }},
      {"gelu_used_twice",
       [](GraphBuilder& g, Random& r) {
         const Value h = g.gelu(g.dense("up", vector(g, r), 16, kWeights));
         finish(g, g.add(g.dense("a", h, 8, kWeights), g.dense("b", h, 8, kWeights)));
       }},
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
      {"layer_norm_of_a_sum",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         const Value sum = g.add(g.tanh(h), g.scale(h, 0.5F));
         finish(g, g.layer_norm(sum, normal(g, "gain", g.dims(h)), normal(g, "bias", g.dims(h))));
       }},
      {"layer_norm_of_a_sum_used_twice",
       [](GraphBuilder& g, Random& r) {
         const Value h = sequence(g, r, 8);
         const Value sum = g.add(h, g.dense("first", h, 8, kWeights));
         const Value n = g.layer_norm(sum, normal(g, "gain", {8}), normal(g, "bias", {8}));
         finish(g, g.add(sum, g.dense("inner", n, 8, kWeights)));
       }},
      {"layer_norm_of_twice_a_value",
       [](GraphBuilder& g, Random& r) {
         const Value h = vector(g, r);
         finish(g, g.layer_norm(g.add(h, h), normal(g, "gain", g.dims(h)), normal(g, "bias", g.dims(h))));
       }},
      {"layer_norm_of_a_sum_with_the_input",
       [](GraphBuilder& g, Random& r) {
         const Value x = g.input({r.between(2, 12)});
         const Value h = g.dense("first", x, g.dims(x)[0], kWeights);
         finish(g, g.layer_norm(g.add(h, x), normal(g, "gain", g.dims(h)), normal(g, "bias", g.dims(h))));
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

}  // namespace paceline::tensor
