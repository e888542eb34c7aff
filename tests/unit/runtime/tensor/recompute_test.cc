// Recomputing on the device of the test program: what a schedule becomes, and that results are the same bits.

#include "runtime/tensor/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/tensor/executable.h"
#include "runtime/tensor/peak_memory.h"
#include "tests/support/run_program.h"
#include "tests/unit/runtime/tensor/deep_graphs.h"
#include "tests/unit/runtime/tensor/symbols.h"
#include "tests/unit/runtime/tensor/trial.h"

namespace paceline::tensor {
namespace {

constexpr std::uint64_t kRecomputedGraphs = 60;

Schedule schedule_of(const GraphBuilder& graph, std::int64_t rows, Mode mode = Mode::kTraining) {
  const auto layout = lay_out_parameters(graph);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return make_schedule(graph, *layout, rows, mode == Mode::kTraining);
}

// All but the tensors, which may be others.
std::string attributes_of(const Operation& o) {
  return str_cat(operation_name(o.kind), " ", o.name, " ", o.inputs.size(), " ", o.outputs.size(), " ",
                 o.relu ? "relu" : "", o.negative ? "negative" : "", " ", o.attributes.heads, " ",
                 o.attributes.stride, " ", o.attributes.padding, " ", o.attributes.window);
}

bool is_loss(OperationKind kind) {
  return kind == OperationKind::kSoftmaxCrossEntropy || kind == OperationKind::kSigmoidCrossEntropy ||
         kind == OperationKind::kMeanSquaredError;
}

void expect_whole(const Schedule& plain, const Schedule& recomputing) {
  ASSERT_EQ(recomputing.forward_count, plain.forward_count);
  EXPECT_EQ(recomputing.training, plain.training);
  EXPECT_EQ(recomputing.elements, plain.elements);
  for (std::size_t o = 0; o < plain.forward_count; ++o) {
    EXPECT_EQ(recomputing.operations[o].inputs, plain.operations[o].inputs);
    EXPECT_EQ(recomputing.operations[o].outputs, plain.operations[o].outputs);
  }
  EXPECT_EQ(left_by(recomputing), left_by(plain));

  std::multiset<std::string> forward, repeated;
  for (std::size_t o = 0; o < plain.operations.size(); ++o) {
    if (o < plain.forward_count) forward.insert(attributes_of(plain.operations[o]));
    if (o >= plain.forward_count) repeated.insert(str_cat("not ", attributes_of(plain.operations[o])));
  }
  for (std::size_t o = plain.forward_count; o < recomputing.operations.size(); ++o) {
    const std::string text = attributes_of(recomputing.operations[o]);
    const auto given = repeated.find(str_cat("not ", text));
    if (given != repeated.end()) {
      repeated.erase(given);
      continue;
    }
    EXPECT_FALSE(is_loss(recomputing.operations[o].kind)) << text;
    const auto first = forward.find(text);
    ASSERT_NE(first, forward.end()) << "repeated twice, or never there: " << text;
    forward.erase(first);
  }
  EXPECT_TRUE(repeated.empty()) << *repeated.begin();

  ASSERT_EQ(recomputing.ready.size(), plain.ready.size());
  for (std::size_t r = 0; r < plain.ready.size(); ++r) {
    EXPECT_EQ(recomputing.ready[r].begin, plain.ready[r].begin);
    EXPECT_EQ(recomputing.ready[r].end, plain.ready[r].end);
    EXPECT_EQ(recomputing.operations[recomputing.ready[r].operation].outputs,
              plain.operations[plain.ready[r].operation].outputs);
  }
  EXPECT_LE(peak_bytes(recomputing), peak_bytes(plain));
}

TEST(Recompute, MakesTheSameFromTheSame) {
  for (const DeepGraph& deep : deep_graphs()) {
    SCOPED_TRACE(deep.name);
    const Schedule plain = schedule_of(deep.graph, 3);
    const Schedule recomputing = recompute_activations(plain);
    expect_whole(plain, recomputing);
    EXPECT_GT(recomputing.operations.size(), plain.operations.size()) << "something is repeated";
    EXPECT_LT(peak_bytes(recomputing), peak_bytes(plain));
  }
}

TEST(Recompute, MakesTheSameOfRandomGraphs) {
  int repeating = 0;
  for (std::uint64_t seed = 0; seed < kRecomputedGraphs; ++seed) {
    SCOPED_TRACE(str_cat("seed ", seed));
    const GraphBuilder graph = random_graph(seed);
    ASSERT_TRUE(graph.status().ok()) << graph.status();
    if (!lay_out_parameters(graph).ok()) continue;  // a part takes no part in the loss
    const Schedule plain = schedule_of(graph, 2);
    const Schedule recomputing = recompute_activations(plain);
    expect_whole(plain, recomputing);
    repeating += recomputing.operations.size() > plain.operations.size() ? 1 : 0;
  }
  EXPECT_GT(repeating, 5);
}

TEST(Recompute, LeavesWhatHasNoBackwardPass) {
  const Schedule plain = schedule_of(deep_graphs()[0].graph, 2, Mode::kInference);
  EXPECT_EQ(recompute_activations(plain).operations.size(), plain.operations.size());
}

// Nothing to win: each layer's result is all that is kept of it, and there is one.
TEST(Recompute, LeavesWhatWouldNotShrink) {
  GraphBuilder graph;
  graph.softmax_cross_entropy(graph.dense("output", graph.relu(graph.dense("fc", graph.input({20}), 30)), 4));
  const Schedule plain = schedule_of(graph, 8);
  EXPECT_EQ(recompute_activations(plain).operations.size(), plain.operations.size());
}

// Cut at the residual stream: what a block keeps is its input, and what it repeats is not all.
TEST(Recompute, ATransformersArenaShrinksToAQuarter) {
  const GraphBuilder graph = gpt_graph({.layers = 12, .heads = 2, .width = 32, .time = 16, .vocabulary = 64});
  const Schedule plain = schedule_of(graph, 2);
  const Schedule recomputing = recompute_activations(plain);
  const std::size_t repeated = recomputing.operations.size() - plain.operations.size();
  EXPECT_GT(repeated, 0U);
  EXPECT_LT(repeated, plain.forward_count * 9 / 10);

  const auto device = make_test_device();
  ASSERT_TRUE(device->enter().ok());
  const auto queue = device->open_queue();
  ASSERT_TRUE(queue.ok()) << queue.status();
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    const auto whole = Executable::make(plain, *device, precision, queue->get());
    const auto less = Executable::make(recomputing, *device, precision, queue->get());
    ASSERT_TRUE(whole.ok() && less.ok()) << whole.status() << less.status();
    EXPECT_LT((*less)->arena_bytes() * 4, (*whole)->arena_bytes());
  }
}

// ---- on the device ----

struct Count final : OperationObserver {
  void begin() override {}
  void end(std::string_view, std::string_view) override { ++operations; }
  std::size_t operations = 0;
};

struct Results {
  std::vector<double> losses;
  std::vector<std::vector<float>> gradients;
  std::vector<float> input_gradients, offset_gradients, scores;
  std::size_t operations = 0;
};

// Two row counts; weights that change in between; gradients that accumulate; at last both passes in one.
Results results_of(const GraphBuilder& graph, Precision precision, bool recompute) {
  const Case given{"", [&](GraphBuilder& g, Random&) { g = graph; }};
  Trial run(given, 5, {.max_rows = 3, .precision = precision, .recompute_activations = recompute});
  Count count;
  run.program().observe(&count);
  Results results;
  for (const std::int64_t rows : {3, 2, 3}) {
    results.losses.push_back(forward(run.program(), rows).loss_sum);
    const bool accumulate = rows == 2;
    std::vector<float> at_ready(run.gradients().size());
    backward(run.program(), 0.5F, accumulate, [&](std::size_t begin, std::size_t end) {
      std::copy(run.gradients().begin() + static_cast<std::ptrdiff_t>(begin),
                run.gradients().begin() + static_cast<std::ptrdiff_t>(end),
                at_ready.begin() + static_cast<std::ptrdiff_t>(begin));
    });
    EXPECT_EQ(at_ready, run.gradients()) << "ranges are final when they are ready";
    results.gradients.push_back(run.gradients());
    for (std::size_t i = 0; i < run.weights().size(); ++i) run.weights()[i] -= 0.01F * run.gradients()[i];
    run.program().weights_changed();
  }
  const auto hear = [&](const ForwardResult& result) {
    results.losses.push_back(result.loss_sum);
    return absl::OkStatus();
  };
  const absl::Status passed = run.program().pass(3, 0.25F, false, hear, nullptr);
  EXPECT_TRUE(passed.ok()) << passed;
  results.gradients.push_back(run.gradients());
  const BatchMemory batch = run.program().batch();
  results.input_gradients.assign(batch.input_gradients.begin(), batch.input_gradients.end());
  results.offset_gradients.assign(batch.offset_gradients.begin(), batch.offset_gradients.end());
  results.scores.assign(batch.scores.begin(), batch.scores.end());
  results.operations = count.operations;
  run.program().observe(nullptr);
  return results;
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i])) << "element " << i;
}

void expect_same_results(const GraphBuilder& graph, bool must_repeat) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    SCOPED_TRACE(precision == Precision::kF32 ? "fp32" : "bf16");
    const Results plain = results_of(graph, precision, false);
    const Results recomputed = results_of(graph, precision, true);
    EXPECT_EQ(recomputed.losses, plain.losses);
    for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
      SCOPED_TRACE(str_cat("pass ", i));
      expect_same_bits(recomputed.gradients[i], plain.gradients[i]);
    }
    expect_same_bits(recomputed.input_gradients, plain.input_gradients);
    expect_same_bits(recomputed.offset_gradients, plain.offset_gradients);
    expect_same_bits(recomputed.scores, plain.scores);
    EXPECT_GE(recomputed.operations, plain.operations + (must_repeat ? 1 : 0));
  }
}

TEST(Recompute, TheSameBits) {
  for (const DeepGraph& deep : deep_graphs()) {
    SCOPED_TRACE(deep.name);
    expect_same_results(deep.graph, true);
  }
}

TEST(Recompute, TheSameBitsOfRandomGraphs) {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < kRecomputedGraphs && tried < 4; ++seed) {
    const GraphBuilder graph = random_graph(seed);
    if (!lay_out_parameters(graph).ok()) continue;
    const Schedule plain = schedule_of(graph, 3);
    if (recompute_activations(plain).operations.size() == plain.operations.size()) continue;
    SCOPED_TRACE(str_cat("seed ", seed));
    expect_same_results(graph, false);
    ++tried;
  }
  EXPECT_EQ(tried, 4);
}

}  // namespace
}  // namespace paceline::tensor
