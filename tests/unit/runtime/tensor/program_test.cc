#include "runtime/tensor/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>

#include "base/rng.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/cpu/cpu_device.h"
#include "tests/support/run_program.h"

// Counts what operator new hands out while `counting` is on. oneDNN makes a small map of arguments for every
// primitive that it runs; tensors, packed weights and scratch memory are what must not be allocated, and they
// are larger than this.
namespace {
constexpr std::size_t kSmall = 1024;
std::atomic<bool> counting{false};
std::atomic<int> large_allocations{0};
std::atomic<int> live{0};
std::atomic<std::size_t> bytes{0};

void* counted(std::size_t size, std::size_t alignment) {
  if (counting.load()) {
    if (size >= kSmall) ++large_allocations;
    bytes += size;
    ++live;
  }
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void released(void* memory) {
  if (counting.load() && memory != nullptr) --live;
  std::free(memory);
}
}  // namespace

void* operator new(std::size_t size) {
  return counted(size, 1);
}
void* operator new[](std::size_t size) {
  return counted(size, 1);
}
void* operator new(std::size_t size, std::align_val_t a) {
  return counted(size, static_cast<std::size_t>(a));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size, 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size, 1);
}
void operator delete(void* memory) noexcept {
  released(memory);
}
void operator delete[](void* memory) noexcept {
  released(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  released(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  released(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  released(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  released(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  released(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  released(memory);
}

namespace paceline::tensor {
namespace {

using ::testing::HasSubstr;

GraphBuilder cnn() {
  GraphBuilder g;
  Value h = g.input({1, 12, 12});
  h = g.max_pool2d(g.relu(g.conv("conv1", h, 16, 3, 1, 1)), 2, 2);
  h = g.max_pool2d(g.relu(g.conv("conv2", h, 32, 3, 1, 1)), 2, 2);
  h = g.relu(g.dense("fc1", g.flatten(h), 24));
  g.softmax_cross_entropy(g.dense("output", h, 10, Init::xavier(24, 10)));
  return g;
}

GraphBuilder gpt() {
  GraphBuilder g;
  const Value table = g.parameter("table", {11, 16}, Init::normal(0.5F));
  Value h = g.add(g.embedding(g.tokens(6), table), g.parameter("positions", {6, 16}, Init::normal(0.5F)));
  const Value n = g.layer_norm(h, g.parameter("gain", {16}, Init::constant(1)),
                               g.parameter("bias", {16}, Init::constant(0)));
  h = g.add(h, g.causal_self_attention(g.dense("qkv", n, 48), 4));
  h = g.add(h, g.dense("down", g.gelu(g.dense("up", h, 64)), 16));
  g.softmax_cross_entropy(g.linear(h, table));
  return g;
}

struct Trained {
  explicit Trained(const GraphBuilder& graph, CompileOptions options, int threads = 1)
      : device(make_cpu_device({threads})), program(*compile(graph, *device, options)) {
    weights.resize(program->parameters().elements);
    gradients.resize(weights.size());
    program->bind(weights, gradients);
    program->initialize(1, weights);
    program->weights_changed();
    Rng rng(2, 3);
    for (float& v : program->batch().inputs) v = rng.normal();
    for (auto& t : program->batch().tokens) t = static_cast<std::int32_t>(rng.below(11));
    for (auto& l : program->batch().labels) l = static_cast<std::int32_t>(rng.below(10));
  }
  double step(std::int64_t rows, float rate) {
    const double loss = forward(*program, rows).loss_sum / static_cast<double>(rows);
    backward(*program, 1.0F / static_cast<float>(rows), false, nullptr);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * gradients[i];
    program->weights_changed();
    return loss;
  }
  std::unique_ptr<Device> device;
  std::vector<float> weights;
  std::vector<float> gradients;
  std::unique_ptr<Program> program;
};

TEST(Program, Learns) {
  for (const auto& graph : {cnn(), gpt()}) {
    for (const auto precision : {Precision::kF32, Precision::kBF16}) {
      Trained t(graph, {8, precision, Mode::kTraining});
      const double first = t.step(8, 0.1F);
      double last = first;
      for (int i = 0; i < 60; ++i) last = t.step(8, 0.1F);
      EXPECT_LE(last, 0.5 * first);
    }
  }
}

TEST(Program, TheSameBitsFromRunToRun) {
  Trained a(cnn(), {7, Precision::kF32, Mode::kTraining});
  Trained b(cnn(), {7, Precision::kF32, Mode::kTraining});
  for (int i = 0; i < 5; ++i) {
    a.step(7, 0.05F);
    b.step(7, 0.05F);
  }
  EXPECT_EQ(a.weights, b.weights);
}

TEST(Program, SumsDoNotDependOnHowSamplesAreSplit) {
  Trained whole(cnn(), {6, Precision::kF32, Mode::kTraining});
  Trained split(cnn(), {6, Precision::kF32, Mode::kTraining});
  const double loss = forward(*whole.program, 6).loss_sum;
  backward(*whole.program, 1, false, nullptr);

  const BatchMemory all = whole.program->batch();
  const BatchMemory part = split.program->batch();
  double sum = 0;
  std::int64_t begin = 0;
  for (const std::int64_t rows : {2, 1, 3}) {
    std::copy_n(all.inputs.begin() + begin * 144, rows * 144, part.inputs.begin());
    std::copy_n(all.labels.begin() + begin, rows, part.labels.begin());
    sum += forward(*split.program, rows).loss_sum;
    backward(*split.program, 1, begin > 0, nullptr);
    begin += rows;
  }
  EXPECT_LE(std::abs(sum - loss), 1e-5 * loss);
  for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
    ASSERT_LE(std::abs(whole.gradients[i] - split.gradients[i]), 1e-5F * (1 + std::abs(whole.gradients[i])))
        << i;
  }
}

TEST(Program, AllocatesNothingAfterTheFirstStep) {
  for (const auto& graph : {cnn(), gpt()}) {
    for (const auto precision : {Precision::kF32, Precision::kBF16}) {
      Trained t(graph, {8, precision, Mode::kTraining});
      ASSERT_TRUE(t.program->reserve(5).ok());
      t.step(8, 0.01F);
      t.step(5, 0.01F);
      large_allocations = 0;
      live = 0;
      counting = true;
      for (int i = 0; i < 3; ++i) {
        t.step(8, 0.01F);
        t.step(5, 0.01F);
      }
      counting = false;
      EXPECT_EQ(large_allocations.load(), 0);
      EXPECT_EQ(live.load(), 0);
    }
  }
}

TEST(Program, MoreRowCountsThanAreKept) {
  Trained t(cnn(), {20, Precision::kF32, Mode::kTraining});
  std::vector<double> first;
  for (std::int64_t rows = 1; rows <= 20; ++rows) first.push_back(forward(*t.program, rows).loss_sum);
  for (std::int64_t rows = 1; rows <= 20; ++rows)
    EXPECT_EQ(forward(*t.program, rows).loss_sum, first[static_cast<std::size_t>(rows - 1)]);
  EXPECT_EQ(t.program->reserve(21).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(t.program->reserve(0).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Program, WeightsAreReadAnewWhenTheyChanged) {
  Trained t(cnn(), {4, Precision::kF32, Mode::kInference});
  const double before = forward(*t.program, 4).loss_sum;
  std::fill(t.weights.begin(), t.weights.end(), 0.0F);
  t.program->weights_changed();
  EXPECT_NE(forward(*t.program, 4).loss_sum, before);
  EXPECT_NEAR(forward(*t.program, 4).loss_sum, 4 * std::log(10.0), 1e-5);
}

TEST(Program, NanReachesTheLoss) {
  for (const char* name : {"output.weight", "fc1.weight", "conv1.weight"}) {
    Trained t(cnn(), {4, Precision::kF32, Mode::kTraining});
    for (const auto& p : t.program->parameters().parameters) {
      if (p.name == name)
        std::fill_n(t.weights.begin() + static_cast<std::ptrdiff_t>(p.offset), p.count,
                    std::numeric_limits<float>::quiet_NaN());
    }
    t.program->weights_changed();
    EXPECT_TRUE(std::isnan(forward(*t.program, 4).loss_sum)) << name;
  }
}

TEST(Program, InitialValuesDependOnSeedAndNameOnly) {
  GraphBuilder other;  // the same parameters in another order, one more between
  Value h = other.input({1, 12, 12});
  other.parameter("output.weight", {10, 24}, Init::xavier(24, 10));
  const Value extra = other.parameter("extra", {24}, Init::normal(1));
  h = other.max_pool2d(other.relu(other.conv("conv1", h, 16, 3, 1, 1)), 2, 2);
  h = other.max_pool2d(other.relu(other.conv("conv2", h, 32, 3, 1, 1)), 2, 2);
  h = other.relu(other.dense("fc1", other.flatten(h), 24));
  other.softmax_cross_entropy(other.dense("output", other.add(h, extra), 10));

  const Trained a(cnn(), {1, Precision::kF32, Mode::kTraining});
  const Trained b(other, {1, Precision::kF32, Mode::kTraining});
  for (const auto& p : a.program->parameters().parameters) {
    const auto& all = b.program->parameters().parameters;
    const auto q = std::find_if(all.begin(), all.end(), [&](const Parameter& x) { return x.name == p.name; });
    ASSERT_NE(q, all.end());
    EXPECT_TRUE(std::equal(a.weights.begin() + static_cast<std::ptrdiff_t>(p.offset),
                           a.weights.begin() + static_cast<std::ptrdiff_t>(p.offset + p.count),
                           b.weights.begin() + static_cast<std::ptrdiff_t>(q->offset)))
        << p.name;
  }
}

TEST(Program, InitialValuesHaveTheirDistribution) {
  GraphBuilder g;
  const Value h = g.linear(g.input({400}), g.parameter("normal", {300, 400}, Init::he(400)));
  const Value uniform = g.parameter("uniform", {200, 300}, Init::xavier(300, 200));
  g.softmax_cross_entropy(g.linear(h, uniform, g.parameter("bias", {200}, Init::constant(0.25F))));
  const Trained t(g, {1, Precision::kF32, Mode::kTraining});
  const auto values = [&](std::size_t i) {
    const auto& p = t.program->parameters().parameters[i];
    return std::span<const float>(t.weights).subspan(p.offset, p.count);
  };
  const auto deviation = [](std::span<const float> v) {
    double sum = 0;
    for (const float x : v) sum += static_cast<double>(x) * static_cast<double>(x);
    return std::sqrt(sum / static_cast<double>(v.size()));
  };
  EXPECT_NEAR(deviation(values(0)), std::sqrt(2.0 / 400), 0.001);
  EXPECT_NEAR(deviation(values(1)), std::sqrt(6.0 / 500) / std::sqrt(3.0), 0.001);
  EXPECT_LE(*std::max_element(values(1).begin(), values(1).end()), std::sqrt(6.0F / 500));
  EXPECT_THAT(values(2), ::testing::Each(0.25F));
}

TEST(Program, LayoutIsAlignedAndNamed) {
  const Trained t(cnn(), {1, Precision::kF32, Mode::kTraining});
  const auto& layout = t.program->parameters();
  std::vector<std::string> names;
  std::size_t count = 0;
  for (const auto& p : layout.parameters) {
    names.push_back(p.name);
    count += p.count;
    EXPECT_EQ(p.offset % 16, 0u);
    EXPECT_EQ(p.decay, p.name.ends_with(".weight"));
  }
  EXPECT_THAT(names, ::testing::ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                            "fc1.weight", "fc1.bias", "output.weight", "output.bias"));
  EXPECT_EQ(layout.trained_elements, count);
  EXPECT_EQ(layout.elements % 16, 0u);
}

TEST(Program, ReadyRangesBeginWithTheLastLayer) {
  Trained t(cnn(), {2, Precision::kF32, Mode::kTraining});
  forward(*t.program, 2);
  std::vector<std::size_t> begins;
  backward(*t.program, 1, false, [&](std::size_t begin, std::size_t) { begins.push_back(begin); });
  EXPECT_EQ(begins.size(), 4u) << "one for each layer";
  EXPECT_TRUE(std::is_sorted(begins.rbegin(), begins.rend()));
}

TEST(Program, ThreadsGiveTheSameResultsUpToRounding) {
  Trained one(cnn(), {8, Precision::kF32, Mode::kTraining}, 1);
  Trained two(cnn(), {8, Precision::kF32, Mode::kTraining}, 2);
  EXPECT_NEAR(forward(*one.program, 8).loss_sum, forward(*two.program, 8).loss_sum, 1e-4);
}

TEST(Compile, RefusesWhatCannotBeTrained) {
  const auto device = make_cpu_device({});
  const auto error = [&](const GraphBuilder& g, std::int64_t rows) {
    const auto program = compile(g, *device, {rows, Precision::kF32, Mode::kTraining});
    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(program.status().message());
  };
  GraphBuilder without_loss;
  without_loss.dense("fc", without_loss.input({3}), 2);
  EXPECT_THAT(error(without_loss, 1), HasSubstr("no loss"));
  GraphBuilder unused = cnn();
  unused.parameter("lonely", {2}, Init::constant(0));
  EXPECT_THAT(error(unused, 1), HasSubstr("lonely"));
  EXPECT_THAT(error(cnn(), 0), HasSubstr("max_rows"));
  GraphBuilder scored;
  scored.scores(scored.dense("fc", scored.input({3}), 2));
  EXPECT_THAT(error(scored, 1), HasSubstr("scores()"));
  GraphBuilder broken;
  broken.relu(Value{5});
  EXPECT_THAT(error(broken, 1), HasSubstr("relu"));
}

TEST(Compile, BytesAreKnownBeforeTheyAreTaken) {
  constexpr std::size_t kRest = std::size_t{1} << 20;  // of what is made beside tensors and weights
  GraphBuilder wide;
  wide.softmax_cross_entropy(wide.dense("output", wide.relu(wide.dense("fc", wide.input({900}), 1100)), 900));
  const auto device = make_cpu_device({});
  for (const Mode mode : {Mode::kInference, Mode::kTraining}) {
    for (const std::int64_t rows : {1, 16, 1000}) {
      const CompileOptions options{rows, Precision::kF32, mode};
      const auto counted = [&](const auto& body) {
        bytes = 0;
        counting = true;
        body();
        counting = false;
        return bytes.load();
      };
      absl::StatusOr<std::size_t> told;
      EXPECT_LT(counted([&] { told = program_bytes(wide, *device, options); }), kRest);
      ASSERT_TRUE(told.ok()) << told.status();
      const std::size_t taken = counted([&] { EXPECT_TRUE(compile(wide, *device, options).ok()); });
      EXPECT_GE(taken, *told) << rows << " rows";
      EXPECT_LT(taken, *told + kRest) << rows << " rows";
    }
  }
}

TEST(Program, TellsAnObserverEveryOperation) {
  struct Names final : OperationObserver {
    void begin() override { ++begun; }
    void end(std::string_view operation, std::string_view name) override {
      seen.push_back(std::string(name) + " " + std::string(operation));
    }
    int begun = 0;
    std::vector<std::string> seen;
  } names;
  Trained t(cnn(), {2, Precision::kF32, Mode::kTraining});
  t.program->observe(&names);
  forward(*t.program, 2);
  backward(*t.program, 1, false, nullptr);
  EXPECT_EQ(static_cast<std::size_t>(names.begun), names.seen.size());
  EXPECT_EQ(names.seen.front(), "conv1 conv2d");
  EXPECT_EQ(names.seen.back(), "conv1 conv2d backward weights") << "and no gradient of the input";
  t.program->observe(nullptr);
  forward(*t.program, 2);
}

}  // namespace
}  // namespace paceline::tensor
