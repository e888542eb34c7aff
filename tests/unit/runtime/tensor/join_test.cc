// What joining makes of schedules: fewer operations, and the same left by them.

#include "runtime/tensor/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/peak_memory.h"
#include "runtime/tensor/recompute.h"
#include "tests/unit/runtime/tensor/deep_graphs.h"
#include "tests/unit/runtime/tensor/symbols.h"

namespace paceline::tensor {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kRandomGraphs = 100;
constexpr Joins kAll{.linear_gelu = true, .embedding_add = true, .add_layer_norm = true};

Schedule schedule_of(const GraphBuilder& graph, Mode mode = Mode::kTraining) {
  const auto layout = lay_out_parameters(graph);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return make_schedule(graph, *layout, 2, mode == Mode::kTraining);
}

// As a program does it.
Schedule joined(Schedule schedule, bool recompute = false) {
  schedule = join_products(std::move(schedule), kAll);
  if (recompute) schedule = recompute_activations(std::move(schedule));
  return join_sums(std::move(schedule), kAll);
}

std::vector<Operation> parts_of_all(const Schedule& schedule) {
  std::vector<Operation> parts;
  for (const Operation& operation : schedule.operations) {
    for (Operation& part : parts_of(operation)) parts.push_back(std::move(part));
  }
  return parts;
}

// The same work in the same order, with the forward pass and the ranges of gradients where they were.
void expect_same_work(const Schedule& plain, const Schedule& made) {
  EXPECT_EQ(left_by(made), left_by(plain));
  EXPECT_EQ(kinds_of(parts_of_all(made)), kinds_of(parts_of_all(plain)));
  const auto forward = [](const Schedule& s) {
    Schedule part = s;
    part.operations.resize(s.forward_count);
    return kinds_of(parts_of_all(part));
  };
  EXPECT_EQ(forward(made), forward(plain));
  ASSERT_EQ(made.ready.size(), plain.ready.size());
  for (std::size_t r = 0; r < plain.ready.size(); ++r) {
    EXPECT_EQ(made.ready[r].begin, plain.ready[r].begin);
    EXPECT_EQ(made.ready[r].end, plain.ready[r].end);
    ASSERT_LT(made.ready[r].operation, made.operations.size());
    EXPECT_EQ(made.operations[made.ready[r].operation].outputs,
              plain.operations[plain.ready[r].operation].outputs);
  }
}

// The most that a norm joined to its sum holds which it would not hold alone: the sum's operand, which is no
// sum yet, and the statistics.
std::size_t still_there(const Schedule& schedule) {
  std::size_t most = 0;
  for (const Operation& o : schedule.operations) {
    if (o.kind != OperationKind::kAddLayerNorm) continue;
    std::size_t bytes = 0;
    for (const TensorId id : {o.inputs[0], o.outputs[2], o.outputs[3]})
      bytes += tensor_bytes(schedule.tensors[static_cast<std::size_t>(id)]);
    most = std::max(most, bytes);
  }
  return most;
}

TEST(Join, TheSameWorkInFewerOperations) {
  for (const DeepGraph& deep : deep_graphs()) {
    for (const Mode mode : {Mode::kTraining, Mode::kInference}) {
      SCOPED_TRACE(str_cat(deep.name, mode == Mode::kTraining ? "" : ", inference"));
      const Schedule plain = schedule_of(deep.graph, mode);
      const Schedule made = joined(plain);
      expect_same_work(plain, made);
      EXPECT_EQ(made.operations.size() < plain.operations.size(), deep.name != "cnn");
      EXPECT_LE(peak_bytes(made), peak_bytes(plain) + still_there(made));
    }
  }
}

// Before recomputing, behind it, and on both sides; what is joined stays so where it is made again.
TEST(Join, RandomGraphsRecomputedAndNot) {
  int fewer = 0, again = 0;
  for (std::uint64_t seed = 0; seed < kRandomGraphs; ++seed) {
    const GraphBuilder graph = random_graph(seed);
    if (!lay_out_parameters(graph).ok()) continue;  // a part takes no part in the loss
    SCOPED_TRACE(str_cat("seed ", seed));
    const Schedule plain = schedule_of(graph);
    const Schedule made = joined(plain);
    expect_same_work(plain, made);
    fewer += made.operations.size() < plain.operations.size() ? 1 : 0;

    const Schedule recomputing = recompute_activations(plain);
    expect_same_work(recomputing, join_sums(recomputing, kAll));
    expect_same_work(recomputing, join_products(join_sums(recomputing, kAll), kAll));
    const Schedule all = joined(plain, true);
    EXPECT_EQ(left_by(all), left_by(plain));
    EXPECT_EQ(left_by(recompute_activations(made)), left_by(plain));
    again += all.operations.size() > made.operations.size() ? 1 : 0;
    // A GELU that is part of a product nowhere stands alone.
    const auto count = [&](const Schedule& s, OperationKind kind) {
      std::vector<std::string> names;
      for (const Operation& o : s.operations) {
        if (o.kind == kind && std::find(names.begin(), names.end(), o.name) == names.end())
          names.push_back(o.name);
      }
      return names.size();
    };
    for (const OperationKind kind : {OperationKind::kGelu, OperationKind::kLinearGelu,
                                     OperationKind::kGeluBackward, OperationKind::kLinearGeluBackwardData})
      EXPECT_EQ(count(all, kind), count(made, kind)) << operation_name(kind);
  }
  EXPECT_GT(fewer, 20);
  EXPECT_GT(again, 5);
}

TEST(Join, UnsupportedJoinStaysTwoOperations) {
  const Schedule plain = schedule_of(deep_graphs()[0].graph);
  const auto kinds = kinds_of(plain.operations);
  EXPECT_EQ(kinds_of(join_sums(join_products(plain, {}), {}).operations), kinds);
  EXPECT_EQ(kinds_of(join_products(plain, {.embedding_add = true, .add_layer_norm = true}).operations),
            kinds);
  EXPECT_EQ(kinds_of(join_sums(plain, {.linear_gelu = true}).operations), kinds);
}

TEST(Join, AGptOfOneBlock) {
  const Schedule made =
      joined(schedule_of(gpt_graph({.layers = 1, .heads = 2, .width = 16, .time = 6, .vocabulary = 13})));
  EXPECT_THAT(
      kinds_of(made.operations),
      ElementsAre("embedding, add", "layer_norm", "linear", "causal_self_attention", "linear",
                  "add, layer_norm", "linear, gelu", "linear", "add, layer_norm", "linear",
                  "softmax_cross_entropy", "softmax_cross_entropy backward", "linear backward weights",
                  "linear backward data", "layer_norm backward", "linear backward weights",
                  "linear backward data, gelu backward", "linear backward weights", "linear backward data",
                  "layer_norm backward", "linear backward weights", "linear backward data",
                  "causal_self_attention backward", "linear backward weights", "linear backward data",
                  "layer_norm backward", "sum rows", "embedding backward"))
      << "no gradient is added up or copied by an operation of its own";
  EXPECT_EQ(made.forward_count, 11U);
}

// Twelve blocks: neither the forward pass nor the repeated parts need more memory than before.
TEST(Join, ATransformersPeakStays) {
  const GraphBuilder graph = gpt_graph({.layers = 12, .heads = 2, .width = 32, .time = 16, .vocabulary = 64});
  for (const Mode mode : {Mode::kTraining, Mode::kInference}) {
    const Schedule plain = schedule_of(graph, mode);
    EXPECT_LE(peak_bytes(joined(plain)), peak_bytes(plain));
    EXPECT_LE(peak_bytes(joined(plain, true)), peak_bytes(recompute_activations(plain)));
  }
}

// ---- what is not joined ----

Value norm(GraphBuilder& g, Value x) {
  const std::int64_t width = g.dims(x).back();
  return g.layer_norm(x, g.parameter("gain", {width}, Init::constant(1)),
                      g.parameter("bias", {width}, Init::constant(0)));
}

std::vector<std::string> joined_kinds(const GraphBuilder& graph, Mode mode = Mode::kTraining) {
  EXPECT_TRUE(graph.status().ok()) << graph.status();
  std::vector<std::string> kinds;
  for (const Operation& operation : joined(schedule_of(graph, mode)).operations) {
    if (parts_of(operation).size() > 1) kinds.emplace_back(operation_name(operation.kind));
  }
  return kinds;
}

TEST(Join, AReluStandsBetween) {
  GraphBuilder g;
  g.softmax_cross_entropy(g.dense("out", g.gelu(g.relu(g.dense("fc", g.input({4}), 8))), 3));
  EXPECT_THAT(joined_kinds(g), ElementsAre("linear backward data, gelu backward"));
}

TEST(Join, AnOperationStandsBetween) {
  GraphBuilder g;
  const Value h = g.dense("fc", g.input({4}), 8);
  const Value t = g.tanh(h);
  g.softmax_cross_entropy(g.dense("out", g.add(g.gelu(h), t), 3));
  EXPECT_THAT(joined_kinds(g), ElementsAre());
}

TEST(Join, InputOfGeluIsKeptWhenItIsRead) {
  GraphBuilder g;
  const Value h = g.dense("fc", g.input({4}), 8);
  g.softmax_cross_entropy(g.dense("out", g.add(g.gelu(h), h), 3));
  for (const Mode mode : {Mode::kTraining, Mode::kInference}) {
    EXPECT_THAT(joined_kinds(g, mode), ElementsAre("linear, gelu"));
    EXPECT_EQ(joined(schedule_of(g, mode)).operations[0].outputs.size(), 2U);
  }
  GraphBuilder alone;
  alone.softmax_cross_entropy(alone.dense("out", alone.gelu(alone.dense("fc", alone.input({4}), 8)), 3));
  EXPECT_EQ(joined(schedule_of(alone)).operations[0].outputs.size(), 2U);
  EXPECT_EQ(joined(schedule_of(alone, Mode::kInference)).operations[0].outputs.size(), 1U);
}

// The gradients of a GELU's two readers are added before they go through it.
TEST(Join, ASumOfGradientsStandsBetween) {
  GraphBuilder g;
  const Value h = g.gelu(g.dense("fc", g.input({4}), 8));
  g.softmax_cross_entropy(g.dense("out", g.add(g.dense("a", h, 8), g.dense("b", h, 8)), 3));
  EXPECT_THAT(joined_kinds(g), ElementsAre("linear, gelu"));
}

TEST(Join, AParameterIsNoResidual) {
  GraphBuilder g;
  const Value h = g.dense("fc", g.input({4}), 8);
  g.softmax_cross_entropy(g.dense("out", norm(g, g.add(h, g.parameter("p", {8}, Init::normal(1)))), 3));
  EXPECT_THAT(joined_kinds(g), ElementsAre());
}

TEST(Join, AnEmbeddingThatIsReadElsewhereStaysAlone) {
  GraphBuilder g;
  const Value table = g.parameter("table", {5, 8}, Init::normal(1));
  const Value h = g.embedding(g.tokens(3), table);
  const Value sum = g.add(h, g.parameter("p", {3, 8}, Init::normal(1)));
  g.softmax_cross_entropy(g.dense("out", g.add(sum, h), 4));
  EXPECT_THAT(joined_kinds(g), ElementsAre());
}

// So that the sum can take its place, whichever side it was on.
TEST(Join, TheSecondOperandIsTheOneThatNobodyReadsAnyMore) {
  for (const bool residual_first : {false, true}) {
    GraphBuilder g;
    const Value x = g.tanh(g.dense("fc", g.input({4}), 8));
    const Value branch = g.scale(x, 2);
    const Value sum = residual_first ? g.add(x, branch) : g.add(branch, x);
    g.softmax_cross_entropy(g.dense("out", norm(g, sum), 3));
    const Schedule made = joined(schedule_of(g));
    const auto both = std::find_if(made.operations.begin(), made.operations.end(),
                                   [](const Operation& o) { return o.kind == OperationKind::kAddLayerNorm; });
    ASSERT_NE(both, made.operations.end());
    EXPECT_EQ(both->inputs[0], made.operations[1].outputs[0]) << "tanh's, which its backward pass reads";
    EXPECT_EQ(both->inputs[1], made.operations[2].outputs[0]);
  }
}

}  // namespace
}  // namespace paceline::tensor
