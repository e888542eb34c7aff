#include "runtime/tensor/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace paceline::tensor {
namespace {

using ::testing::HasSubstr;

constexpr Init kZero = Init::constant(0);

TEST(GraphBuilder, ShapesOfResults) {
  GraphBuilder g;
  const Value x = g.input({3, 9, 8});
  const Value c = g.conv("conv", x, 6, 3, 2, 1);
  EXPECT_EQ(g.dims(c), (Dims{6, 5, 4}));
  const Value p = g.max_pool2d(g.relu(c), 2, 2);
  EXPECT_EQ(g.dims(p), (Dims{6, 2, 2}));
  const Value f = g.flatten(p);
  EXPECT_EQ(g.dims(f), (Dims{24}));
  EXPECT_EQ(g.flatten(f).id, f.id) << "nothing to do";
  EXPECT_EQ(g.dims(g.dense("fc", g.reshape(p, {6, 4}), 7)), (Dims{6, 7}));
  EXPECT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(g.dims(Value{}), Dims{});
}

TEST(GraphBuilder, OneParameterForOneName) {
  GraphBuilder g;
  const Value a = g.parameter("w", {2, 3}, kZero);
  EXPECT_EQ(g.parameter("w", {2, 3}, kZero).id, a.id);
  EXPECT_FALSE(g.parameter("w", {3, 2}, kZero).valid());
  EXPECT_THAT(std::string(g.status().message()),
              ::testing::AllOf(HasSubstr("w"), HasSubstr("{2, 3}"), HasSubstr("{3, 2}")));
}

TEST(GraphBuilder, TheFirstErrorSticks) {
  GraphBuilder g;
  const Value x = g.input({4});
  g.linear(x, g.parameter("w", {2, 5}, kZero));
  const std::string first(g.status().message());
  g.softmax_cross_entropy(g.relu(g.add(x, Value{})));
  g.fail(absl::InternalError("later"));
  EXPECT_EQ(std::string(g.status().message()), first);
  EXPECT_FALSE(g.relu(x).valid());
}

TEST(GraphBuilder, AnArrayThatIsTooLargeIsToldWithTheBound) {
  GraphBuilder g;
  g.parameter("wte", {1 << 24, 1 << 20}, kZero);
  EXPECT_THAT(std::string(g.status().message()),
              AllOf(HasSubstr("wte"), HasSubstr("too large"), HasSubstr("at most 1099511627776 elements")));
}

struct Refusal {
  const char* name;
  std::function<void(GraphBuilder&)> build;
  std::vector<const char*> words;  // of the message
};

class Refusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refusals, NameTheOperatorAndBothShapes) {
  GraphBuilder g;
  GetParam().build(g);
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* word : GetParam().words) EXPECT_THAT(std::string(g.status().message()), HasSubstr(word));
}

Value image(GraphBuilder& g) {
  return g.input({3, 8, 8});
}

INSTANTIATE_TEST_SUITE_P(
    All, Refusals,
    ::testing::Values(
        Refusal{"two_inputs",
                [](auto& g) {
                  g.input({2});
                  g.tokens(3);
                },
                {"tokens", "already"}},
        Refusal{"empty_input", [](auto& g) { g.input({}); }, {"input", "{}"}},
        Refusal{"negative_dim",
                [](auto& g) {
                  g.input({2, -1});
                },
                {"input", "{2, -1}"}},
        Refusal{"huge",
                [](auto& g) {
                  g.parameter("w", {1'000'000'000, 1'000'000'000}, kZero);
                },
                {"w", "1000000000"}},
        Refusal{"zero_tokens", [](auto& g) { g.tokens(0); }, {"tokens", "0"}},
        Refusal{"nameless", [](auto& g) { g.parameter("", {1}, kZero); }, {"parameter", "name"}},
        Refusal{
            "position_of_a_flat_value", [](auto& g) { g.at_position(g.input({4})); }, {"at_position", "{4}"}},
        Refusal{"two_positions",
                [](auto& g) {
                  const Value x = g.input({4, 4});
                  g.at_position(x);
                  g.at_position(x);
                },
                {"at_position", "one label"}},
        Refusal{"loss_behind_a_position",
                [](auto& g) {
                  g.softmax_cross_entropy(g.at_position(g.input({4, 2})));
                },
                {"softmax_cross_entropy", "at_position", "scores()"}},
        Refusal{"cached_attention_of_two_positions",
                 [](auto& g) { g.cached_self_attention(g.input({2, 6}), 1, 8); },
                 {"cached_self_attention", "{2, 6}"}},
        Refusal{"cached_attention_to_nothing",
                 [](auto& g) { g.cached_self_attention(g.input({1, 6}), 1, 0); },
                 {"cached_self_attention", "at least 1 position"}},
        Refusal{"a_cache_shorter_than_the_positions",
                 [](auto& g) { g.causal_self_attention(g.input({4, 6}), 1, 3); },
                 {"causal_self_attention", "3 positions"}},
        Refusal{"a_cache_in_training",
                 [](auto& g) { g.softmax_cross_entropy(g.causal_self_attention(g.input({4, 6}), 1, 4)); },
                 {"softmax_cross_entropy", "key/value cache", "scores()"}},
        Refusal{"embedding_of_label_by_no_parameter",
                 [](auto& g) { g.embedding_of_label(g.input({4, 6})); },
                 {"embedding_of_label", "{4, 6}"}},
        Refusal{"loss_behind_first_positions",
                [](auto& g) {
                  g.softmax_cross_entropy(g.add(g.input({4, 2}), g.parameter("p", {5, 2}, kZero)));
                },
                {"softmax_cross_entropy", "first positions", "scores()"}},
        Refusal{"add_of_fewer_positions",
                [](auto& g) {
                  g.add(g.input({4, 2}), g.parameter("p", {3, 2}, kZero));
                },
                {"add", "{4, 2}", "{3, 2}"}},
        Refusal{"scores_of_a_parameter",
                [](auto& g) {
                  g.input({2});
                  g.scores(g.parameter("p", {2}, kZero));
                },
                {"scores", "parameter"}},
        Refusal{"linear",
                [](auto& g) {
                  g.linear(g.input({4}), g.parameter("w", {2, 5}, kZero));
                },
                {"linear", "{4}", "{2, 5}"}},
        Refusal{"linear_bias",
                [](auto& g) {
                  g.linear(g.input({4}), g.parameter("w", {2, 4}, kZero), g.parameter("b", {4}, kZero));
                },
                {"linear", "{2, 4}", "{4}"}},
        Refusal{"linear_on_computed_weight",
                [](auto& g) {
                  const Value x = g.input({4});
                  g.linear(x, x);
                },
                {"linear", "weight"}},
        Refusal{"conv_channels",
                [](auto& g) {
                  g.conv2d(image(g), g.parameter("w", {4, 2, 3, 3}, kZero), {}, 1, 1);
                },
                {"conv2d", "{3, 8, 8}", "{4, 2, 3, 3}"}},
        Refusal{
            "conv_of_a_vector", [](auto& g) { g.conv("conv", g.input({9}), 4, 3, 1, 1); }, {"conv", "{9}"}},
        Refusal{"conv_too_large",
                [](auto& g) { g.conv("conv", image(g), 4, 9, 1, 0); },
                {"conv2d", "{4, 3, 9, 9}", "{3, 8, 8}"}},
        Refusal{"conv_stride", [](auto& g) { g.conv("conv", image(g), 4, 3, 0, 1); }, {"conv2d", "stride"}},
        Refusal{"conv_padding", [](auto& g) { g.conv("conv", image(g), 4, 3, 1, 3); }, {"conv2d", "padding"}},
        Refusal{"pool_too_large",
                [](auto& g) { g.max_pool2d(image(g), 9, 1); },
                {"max_pool2d", "9", "{3, 8, 8}"}},
        Refusal{"pool_of_a_vector", [](auto& g) { g.max_pool2d(g.input({9}), 2, 2); }, {"max_pool2d", "{9}"}},
        Refusal{"add",
                [](auto& g) {
                  const Value x = image(g);
                  g.add(x, g.flatten(x));
                },
                {"add", "{3, 8, 8}", "{192}"}},
        Refusal{"multiply",
                [](auto& g) {
                  const Value x = image(g);
                  g.multiply(x, g.flatten(x));
                },
                {"multiply", "{3, 8, 8}", "{192}"}},
        Refusal{"reshape", [](auto& g) { g.reshape(image(g), {5}); }, {"reshape", "{3, 8, 8}", "{5}"}},
        Refusal{"embedding_of_floats",
                [](auto& g) {
                  g.embedding(g.input({4}), g.parameter("t", {5, 2}, kZero));
                },
                {"embedding", "tokens"}},
        Refusal{"embedding_table",
                [](auto& g) { g.embedding(g.tokens(4), g.parameter("t", {5}, kZero)); },
                {"embedding", "{5}"}},
        Refusal{"relu_of_tokens", [](auto& g) { g.relu(g.tokens(4)); }, {"relu"}},
        Refusal{"relu_of_a_parameter", [](auto& g) { g.relu(g.parameter("w", {4}, kZero)); }, {"relu"}},
        Refusal{"layer_norm",
                [](auto& g) {
                  g.layer_norm(g.input({4}), g.parameter("a", {4}, kZero), g.parameter("b", {3}, kZero));
                },
                {"layer_norm", "{4}", "{3}"}},
        Refusal{"attention",
                [](auto& g) {
                  g.causal_self_attention(g.input({4, 12}), 5);
                },
                {"causal_self_attention", "5", "{4, 12}"}},
        Refusal{"loss_of_an_image",
                [](auto& g) { g.softmax_cross_entropy(image(g)); },
                {"softmax_cross_entropy", "{3, 8, 8}"}},
        Refusal{"two_losses",
                [](auto& g) {
                  const Value x = g.input({4});
                  g.softmax_cross_entropy(x);
                  g.softmax_cross_entropy(x);
                },
                {"softmax_cross_entropy", "already"}},
        Refusal{"squared_error",
                [](auto& g) {
                  const Value x = image(g);
                  g.mean_squared_error(x, g.flatten(x));
                },
                {"mean_squared_error", "{3, 8, 8}", "{192}"}},
        Refusal{"foreign_value", [](auto& g) { g.relu(Value{7}); }, {"relu", "not a value of this graph"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace paceline::tensor
