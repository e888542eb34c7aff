// Kernels that memory holds up load and store no more than they must: every byte of their vectors once, and
// again only what is said here to lie in the caches by then. Each access of a kernel is counted
// (tests/support/fake_cuda/traffic.cc).

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/attention.h"
#include "runtime/cuda/conversion.h"
#include "runtime/cuda/cross_entropy.h"
#include "runtime/cuda/elementwise.h"
#include "runtime/cuda/embedding.h"
#include "runtime/cuda/layer_norm.h"
#include "runtime/cuda/optimizer.h"
#include "runtime/cuda/weights_hash.h"
#include "tests/support/fake_cuda/gpu_test.h"

namespace paceline::cuda {
namespace {

constexpr DType kHalf = DType::kBF16;
constexpr std::uint32_t kRows = 96, kColumns = 512;
constexpr std::size_t kN = std::size_t{kRows} * kColumns;

// Bytes.
struct Moves {
  std::size_t loads = 0;
  std::size_t loads_again = 0;  // from the caches
  std::size_t stores = 0;
  std::size_t common = 0;  // that each thread may load more, of what its block or row has in common
};

class TrafficTest : public GpuTest {
 protected:
  TrafficTest() : GpuTest(4) {}

  template <typename T = float>
  T* zeros(std::size_t elements) {
    buffers_.push_back(must(DeviceBuffer::create(context_, elements * sizeof(T))));
    EXPECT_TRUE(stream_->clear(buffers_.back().address(), elements * sizeof(T)).ok());
    return buffers_.back().as<T>();
  }
  void* halves(std::size_t elements) { return zeros<std::uint16_t>(elements); }
  template <typename T>
  T* copied(const std::vector<T>& values) {
    T* const address = zeros<T>(values.size());
    EXPECT_TRUE(stream_->to_device(address, std::as_bytes(std::span(values))).ok());
    finish();
    return address;
  }
  void TearDown() override {
    buffers_.clear();
    GpuTest::TearDown();
  }

  template <typename Launch>
  void expect(const std::string& what, const Moves& moves, Launch launch) {
    SCOPED_TRACE(what);
    finish();
    const fake_cuda::Traffic before = fake().traffic();
    EXPECT_TRUE(launch().ok());
    finish();
    const fake_cuda::Traffic after = fake().traffic();
    const std::size_t loaded = after.loaded - before.loaded, stored = after.stored - before.stored,
                      common = moves.common * (after.threads - before.threads);
    EXPECT_GE(loaded, moves.loads + moves.loads_again);
    EXPECT_LE(loaded, moves.loads + moves.loads_again + common);
    EXPECT_GE(stored, moves.stores);
    EXPECT_LE(stored, moves.stores + moves.stores / 50);
  }

  std::vector<DeviceBuffer> buffers_;
};

TEST_F(TrafficTest, Elementwise) {
  const auto kernels = must(Elementwise::load(context_));
  void *const x = halves(kN), *const y = halves(kN), *const row = halves(kColumns);
  const Moves one{2 * kN, 0, 2 * kN}, two{4 * kN, 0, 2 * kN};
  using Function = Elementwise::Function;
  for (const Function f : {Function::kRelu, Function::kGelu, Function::kTanh, Function::kSigmoid}) {
    expect("forward", one, [&] { return kernels.apply(*stream_, f, kHalf, x, y, kN); });
    expect("backward", two, [&] { return kernels.backward(*stream_, f, kHalf, x, y, y, kN); });
  }
  expect("scale", one, [&] { return kernels.scale(*stream_, kHalf, 2, x, y, kN); });
  expect("add", two, [&] { return kernels.add(*stream_, kHalf, x, y, y, kN); });
  expect("multiply", two, [&] { return kernels.multiply(*stream_, kHalf, x, y, y, kN); });
  // The row is for everyone.
  const Moves periodic{2 * kN, 2 * kN, 2 * kN};
  expect("add row", periodic, [&] { return kernels.add_row(*stream_, kHalf, x, row, y, kN, kColumns); });
  expect("bias and gelu", periodic,
         [&] { return kernels.bias_gelu(*stream_, kHalf, x, row, y, kN, kColumns); });
}

TEST_F(TrafficTest, Conversion) {
  const auto kernels = must(Conversion::load(context_));
  float* const wide = zeros(kN);
  void* const half = halves(kN);
  expect("narrow", {4 * kN, 0, 2 * kN},
         [&] { return kernels.convert(*stream_, DType::kF32, wide, kHalf, half, kN); });
  expect("widen", {2 * kN, 0, 4 * kN},
         [&] { return kernels.convert(*stream_, kHalf, half, DType::kF32, wide, kN); });
}

TEST_F(TrafficTest, ColumnSums) {
  const auto kernels = must(Columns::load(context_));
  const std::size_t parts = Columns::scratch_elements(kRows, kColumns) * sizeof(float);
  void* const x = halves(kN);
  float *const sums = zeros(kColumns), *const scratch = zeros(parts / sizeof(float));
  expect("column sums", {2 * kN, parts, parts + 4 * kColumns},
         [&] { return kernels.sums(*stream_, kHalf, x, sums, false, scratch, kRows, kColumns); });
}

TEST_F(TrafficTest, LayerNorm) {
  const auto columns = must(Columns::load(context_));
  const auto kernels = must(LayerNorm::load(context_, columns));
  void *const x = halves(kN), *const residual = halves(kN), *const y = halves(kN);
  float *const gain = zeros(kColumns), *const bias = zeros(kColumns), *const means = zeros(kRows),
               *const inverses = zeros(kRows);
  LayerNormParams forward{.x = x,
                          .residual = residual,
                          .sum = residual,
                          .gain = gain,
                          .bias = bias,
                          .y = y,
                          .means = means,
                          .inverses = inverses,
                          .epsilon = 1e-5F,
                          .rows = kRows,
                          .columns = kColumns};
  const std::size_t statistics = 8 * kRows;
  // Gain and bias are for every row.
  expect("residual and layer norm", {4 * kN, 8 * kN, 4 * kN + statistics},
         [&] { return kernels.forward(*stream_, kHalf, forward); });
  forward.residual = nullptr;
  forward.sum = nullptr;
  expect("layer norm", {2 * kN, 8 * kN, 2 * kN + statistics},
         [&] { return kernels.forward(*stream_, kHalf, forward); });
  const std::size_t partials = LayerNorm::scratch_elements(kRows, kColumns);
  const LayerNormBackwardParams backward{.x = x,
                                         .dy = y,
                                         .through = residual,
                                         .dx = residual,
                                         .gain = gain,
                                         .means = means,
                                         .inverses = inverses,
                                         .partials = zeros(partials),
                                         .rows = kRows,
                                         .columns = kColumns};
  // Each block loads the gain once and stores two rows of partial sums, which are loaded to be joined.
  const std::size_t blocks = norm_backward_shape(kHalf, kRows, kColumns).columns;
  const std::size_t gains = 4 * kColumns * blocks, sums = 2 * gains;
  const std::size_t common = 8 * kRows * norm_backward_shape(kHalf, kRows, kColumns).threads;
  expect("layer norm backward", {6 * kN, gains + sums + common, 2 * kN + sums + 8 * kColumns}, [&] {
    return kernels.backward(*stream_, kHalf, backward, {gain, bias, false});
  });
}

TEST_F(TrafficTest, CrossEntropy) {
  const auto kernels = must(CrossEntropy::load(context_));
  for (const std::uint32_t classes : {8192U, 5003U}) {  // the latter's rows begin anywhere
    constexpr std::uint32_t kSamples = 7, kLabel = 4, kScores = 2 * kSamples;
    const std::size_t logits = std::size_t{2} * kSamples * classes;
    float* const losses = zeros(2 * kSamples);
    const CrossEntropyParams params{.logits = halves(logits / 2),
                                    .labels = zeros<std::int32_t>(kSamples),
                                    .losses = losses,
                                    .hits = reinterpret_cast<std::int32_t*>(losses + kSamples),
                                    .scale = 1,
                                    .rows = kSamples,
                                    .classes = classes,
                                    .stride = classes};
    expect("forward", {logits, kScores, 8 * kSamples, kLabel},
           [&] { return kernels.forward(*stream_, kHalf, params); });
    expect("gradient", {logits, logits + kScores, logits + 8 * kSamples, kLabel},
           [&] { return kernels.gradient(*stream_, kHalf, params); });
  }
}

TEST_F(TrafficTest, Optimizer) {
  const auto kernels = must(GpuOptimizer::load(context_));
  const UpdateRange range{0, kN, true};
  const std::vector<UpdateChunk> chunks = update_chunks({&range, 1});
  float *const gradient = zeros(kN), *const first = zeros(kN), *const second = zeros(kN);
  constexpr std::size_t kChunk = sizeof(UpdateChunk) + sizeof(float) + sizeof(std::uint32_t);  // and clipping
  auto* const clipping = zeros<Clipping>(1);
  auto* const scratch = zeros<double>(square_parts(kN));
  expect("clip", {4 * kN, 8 * square_parts(kN), 8 * square_parts(kN) + sizeof(Clipping)},
         [&] { return kernels.clip(*stream_, gradient, kN, 1, scratch, clipping); });
  const UpdateParams update{.chunks = copied(chunks),
                            .weights = zeros(kN),
                            .gradient = gradient,
                            .copy = halves(kN),
                            .clipping = clipping};
  expect("SGD with bf16 copy", {12 * kN, 0, 10 * kN, kChunk}, [&] {
    return kernels.sgd(*stream_, {.update = update, .momentum = first, .learning_rate = 0.1F, .factor = 0.9F},
                       chunks.size());
  });
  expect("Adagrad with bf16 copy", {12 * kN, 0, 10 * kN, kChunk}, [&] {
    return kernels.adagrad(*stream_, {.update = update, .sum = first, .learning_rate = 0.1F, .epsilon = 1},
                           chunks.size());
  });
  expect("AdamW with bf16 copy", {16 * kN, 0, 14 * kN, kChunk}, [&] {
    return kernels.adam(*stream_, {.update = update, .first = first, .second = second, .epsilon = 1},
                        chunks.size());
  });
}

TEST_F(TrafficTest, WeightsHash) {
  const auto kernels = must(WeightsHash::load(context_));
  const std::size_t parts = WeightsHash::parts(kN);
  const float* const weights = zeros(kN);
  auto* const sums = zeros<std::uint64_t>(parts);
  expect("hash", {4 * kN, 0, 8 * parts}, [&] { return kernels.add(*stream_, weights, kN, sums); });
}

TEST_F(TrafficTest, Embedding) {
  const auto kernels = must(Embedding::load(context_));
  constexpr std::uint32_t kVocabulary = 64, kTime = 24;
  std::vector<std::int32_t> tokens;
  for (std::uint32_t r = 0; r < kRows; ++r) tokens.push_back(static_cast<std::int32_t>(r % 32));
  void* const dy = halves(kN);
  expect("embedding", {4 * kN, 4 * kN / 8, 2 * kN}, [&] {
    return kernels.forward(*stream_, kHalf,
                           {.tokens = copied(tokens),
                            .table = halves(kVocabulary * kColumns),
                            .positions = halves(kTime * kColumns),
                            .y = dy,
                            .rows = kRows,
                            .time = kTime,
                            .width = kColumns,
                            .vocabulary = kVocabulary});
  });
  EmbeddingPlan plan;
  ASSERT_TRUE(plan_embedding(tokens, kVocabulary, plan).ok());
  ASSERT_EQ(plan.slots, 0U);
  // Each token's gradient is loaded and stored once, however many rows are the token's.
  const std::size_t gradients = 4 * std::size_t{kColumns} * plan.pieces.size();
  const EmbeddingPiecesParams pieces{.counts = copied(std::vector<EmbeddingCounts>{plan.counts()}),
                                     .pieces = copied(plan.pieces),
                                     .order = copied(plan.order),
                                     .dy = dy,
                                     .gradient = zeros(kVocabulary * kColumns),
                                     .partials = nullptr,
                                     .width = kColumns};
  expect("embedding backward", {2 * kN + gradients + 4 * kRows, 0, gradients, sizeof(EmbeddingPiece) + 4},
         [&] {
           return kernels.backward(*stream_, kHalf, pieces, nullptr, {plan.counts().pieces, 0});
         });
}

// On tensor cores each block loads the keys and values of its past once, or the queries and gradients of its
// future, from the caches: those of one head are few.
TEST_F(TrafficTest, Attention) {
  const auto kernels = must(Attention::load(context_));
  const AttentionShape shape{2, 300, 2, 64};
  const std::size_t heads = std::size_t{shape.rows} * shape.heads, queries = heads * shape.time;
  const std::size_t vector = 2 * std::size_t{shape.head_size}, all = queries * vector;
  // Positions that blocks of 64 see, from the first one on and up to the last one.
  const std::size_t past = heads * (64 + 128 + 192 + 256 + 300), future = heads * (300 + 236 + 172 + 108 + 44);
  const AttentionParams forward{.qkv = halves(3 * all / 2),
                                .y = halves(all / 2),
                                .statistics = zeros(2 * queries),
                                .shape = shape,
                                .scale = 1};
  expect("attention", {3 * all, 2 * (past - queries) * vector, all + 8 * queries},
         [&] { return kernels.forward(*stream_, kHalf, forward); });
  const AttentionBackwardParams backward{.qkv = forward.qkv,
                                         .y = forward.y,
                                         .dy = halves(all / 2),
                                         .statistics = forward.statistics,
                                         .products = zeros(queries),
                                         .dqkv = halves(3 * all / 2),
                                         .shape = shape,
                                         .scale = 1};
  // Queries and gradients, results, keys and values, for dq; then for dk and dv.
  const std::size_t first = 3 * all + 2 * past * vector + 4 * queries,
                    second = 2 * all + 2 * future * vector + 12 * future;
  const std::size_t once = 5 * all + 8 * queries;
  expect("attention backward", {once, first + second - once, 3 * all + 4 * queries},
         [&] { return kernels.backward(*stream_, kHalf, backward); });
}

}  // namespace
}  // namespace paceline::cuda
