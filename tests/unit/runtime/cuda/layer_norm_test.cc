#include "runtime/cuda/layer_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

struct Norm {
  Doubles y, dx, gain_gradient, bias_gradient;
};

// Of rows x, with dy the gradient of y.
Norm oracle(const Doubles& x, const std::vector<float>& gain, const std::vector<float>& bias,
            const Doubles& dy, std::size_t columns) {
  Norm n{Doubles(x.size()), Doubles(x.size()), Doubles(columns), Doubles(columns)};
  const auto count = static_cast<double>(columns);
  for (std::size_t at = 0; at < x.size(); at += columns) {
    double mean = 0, variance = 0, g_mean = 0, gh_mean = 0;
    for (std::size_t c = 0; c < columns; ++c) mean += x[at + c] / count;
    for (std::size_t c = 0; c < columns; ++c) variance += std::pow(x[at + c] - mean, 2) / count;
    const double inverse = 1 / std::sqrt(variance + 1e-5);
    Doubles h(columns), g(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      h[c] = (x[at + c] - mean) * inverse;
      g[c] = dy[at + c] * gain[c];
      n.y[at + c] = h[c] * gain[c] + bias[c];
      g_mean += g[c] / count;
      gh_mean += g[c] * h[c] / count;
      n.gain_gradient[c] += dy[at + c] * h[c];
      n.bias_gradient[c] += dy[at + c];
    }
    for (std::size_t c = 0; c < columns; ++c) n.dx[at + c] = inverse * (g[c] - g_mean - h[c] * gh_mean);
  }
  return n;
}

struct Shape {
  std::size_t rows, columns;
};
// Rows of one, two, four and eight warps; whole 16 bytes in both types, in fp32 alone, in neither; beyond
// what is held; and gradients of more parts than a block of join_columns has rows.
constexpr Shape kShapes[] = {{1, 2},    {3, 5},    {9, 64},   {5, 100},  {130, 130},
                             {3, 523},  {7, 768},  {3, 1023}, {9, 1600}, {3, 2051},
                             {2, 2304}, {5, 4096}, {5, 4104}, {3, 5003}, {200, 8}};

template <typename T>
class LayerNormTest : public GpuTest {
 protected:
  LayerNormTest()
      : columns_(must(Columns::load(context_))), kernels_(must(LayerNorm::load(context_, *columns_))) {}
  void TearDown() override {
    kernels_.reset();
    columns_.reset();
    GpuTest::TearDown();
  }

  std::optional<Columns> columns_;
  std::optional<LayerNorm> kernels_;
  Rng rng_{22, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(LayerNormTest, Types);

TYPED_TEST(LayerNormTest, ForwardAndBackwardWithAndWithoutResidual) {
  using T = TypeParam;
  for (const Shape& shape : kShapes) {
    const std::size_t rows = shape.rows, columns = shape.columns;
    if (this->kSlow && columns > 523) continue;
    for (const bool fused : {false, true}) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << columns << (fused ? " with residual" : ""));
      const std::size_t n = rows * columns;
      const auto x = random_values<T>(this->rng_, n, 2), residual = random_values<T>(this->rng_, n);
      const auto dy = random_values<T>(this->rng_, n), through = random_values<T>(this->rng_, n);
      const auto gain = random_values<float>(this->rng_, columns),
                 bias = random_values<float>(this->rng_, columns);
      std::vector<T> total;
      for (std::size_t i = 0; i < n; ++i)
        total.push_back(fused ? T(static_cast<float>(x[i]) + static_cast<float>(residual[i])) : x[i]);
      const Norm expected = oracle(doubles(total), gain, bias, doubles(dy), columns);
      Doubles dx = expected.dx;
      for (std::size_t i = 0; i < n && fused; ++i) dx[i] += static_cast<float>(through[i]);

      std::vector<float> first;
      this->in_both_orders([&] {
        const auto a = this->upload(x), b = this->upload(residual), d = this->upload(dy),
                   t = this->upload(through);
        const auto g = this->upload(gain), c = this->upload(bias);
        const auto y = this->template array<T>(n);
        const auto means = this->template array<float>(rows), inverses = this->template array<float>(rows);
        ASSERT_TRUE(this->kernels_
                        ->forward(*this->stream_, kTypeOf<T>,
                                  {.x = a.data(),
                                   .residual = fused ? b.data() : nullptr,
                                   .sum = fused ? a.data() : nullptr,  // over x
                                   .gain = g.data(),
                                   .bias = c.data(),
                                   .y = y.data(),
                                   .means = means.data(),
                                   .inverses = inverses.data(),
                                   .epsilon = 1e-5F,
                                   .rows = static_cast<std::uint32_t>(rows),
                                   .columns = static_cast<std::uint32_t>(columns)})
                        .ok());
        EXPECT_TRUE(same_bits(this->download(a), total));
        expect_near(this->download(y), expected.y, 4e-6);

        const auto gains = this->upload(std::vector<float>(columns, 1)),
                   biases = this->upload(std::vector<float>(columns, 2));
        const auto scratch = this->template array<float>(LayerNorm::scratch_elements(rows, columns));
        ASSERT_TRUE(this->kernels_
                        ->backward(*this->stream_, kTypeOf<T>,
                                   {.x = a.data(),
                                    .dy = d.data(),
                                    .through = fused ? t.data() : nullptr,
                                    .dx = fused ? t.data() : d.data(),  // over one of them
                                    .gain = g.data(),
                                    .means = means.data(),
                                    .inverses = inverses.data(),
                                    .partials = scratch.data(),
                                    .rows = static_cast<std::uint32_t>(rows),
                                    .columns = static_cast<std::uint32_t>(columns)},
                                   {.gain = gains.data(), .bias = biases.data(), .accumulate = fused})
                        .ok());
        expect_near(this->download(fused ? t : d), dx, 2e-5);
        Doubles gain_gradient = expected.gain_gradient, bias_gradient = expected.bias_gradient;
        for (std::size_t k = 0; k < columns && fused; ++k) {
          gain_gradient[k] += 1;
          bias_gradient[k] += 2;
        }
        const auto got = this->download(gains);
        expect_near(got, gain_gradient, 1e-5);
        expect_near(this->download(biases), bias_gradient, 1e-5);
        EXPECT_TRUE(first.empty() || same_bits(first, got));
        first = got;
      });
    }
  }
}

TYPED_TEST(LayerNormTest, ANumberThatIsNoneSpoilsItsRowAlone) {
  using T = TypeParam;
  constexpr std::size_t kColumns = 24;
  auto x = random_values<T>(this->rng_, 3 * kColumns);
  x[kColumns + 3] = T(std::nanf(""));
  const auto a = this->upload(x);
  const auto ones = this->upload(std::vector<float>(kColumns, 1));
  const auto y = this->template array<T>(x.size());
  const auto means = this->template array<float>(3), inverses = this->template array<float>(3);
  ASSERT_TRUE(this->kernels_
                  ->forward(*this->stream_, kTypeOf<T>,
                            {.x = a.data(),
                             .residual = nullptr,
                             .sum = nullptr,
                             .gain = ones.data(),
                             .bias = ones.data(),
                             .y = y.data(),
                             .means = means.data(),
                             .inverses = inverses.data(),
                             .epsilon = 1e-5F,
                             .rows = 3,
                             .columns = kColumns})
                  .ok());
  const Doubles values = doubles(this->download(y));
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(values[i]), i / kColumns == 1) << i;
}

TYPED_TEST(LayerNormTest, NoRows) {
  using T = TypeParam;
  EXPECT_TRUE(this->kernels_->forward(*this->stream_, kTypeOf<T>, {.rows = 0, .columns = 8}).ok());
  const auto gains = this->upload(std::vector<float>(8, 1)), biases = this->upload(std::vector<float>(8, 1));
  const auto scratch = this->template array<float>(LayerNorm::scratch_elements(0, 8));
  ASSERT_TRUE(this->kernels_
                  ->backward(*this->stream_, kTypeOf<T>,
                             {.gain = gains.data(), .partials = scratch.data(), .rows = 0, .columns = 8},
                             {.gain = gains.data(), .bias = biases.data()})
                  .ok());
  EXPECT_THAT(this->download(biases), ::testing::Each(0));
}

TEST(LayerNormShapes, GiveEveryColumnAThread) {
  const auto shape = [](std::size_t rows, std::uint32_t columns) {
    return norm_shape(DType::kBF16, rows, columns, 132);
  };
  EXPECT_EQ(shape(1, 768), (LaunchShape{.columns = 1, .threads = 256}));
  EXPECT_EQ(shape(16'384, 1024), (LaunchShape{.columns = 2048, .threads = 256}));
  EXPECT_EQ(shape(4'096, 1600), (LaunchShape{.columns = 1024, .threads = 256}));
  EXPECT_EQ(shape(4'096, 4096), (LaunchShape{.columns = 2048, .threads = 256}));
  EXPECT_EQ(shape(2'048, 1025), (LaunchShape{.columns = 1024, .threads = 256}));
  EXPECT_EQ(shape(1'000'000, 768), (LaunchShape{.columns = 2112, .threads = 256}));
  for (const std::uint32_t each : {kNormLaneColumns, kNormLaneAny}) {
    for (std::uint32_t columns = 1; columns <= kMostHeldNormColumns; ++columns) {
      const std::uint32_t warps = norm_row_warps(columns, each);
      ASSERT_GE(warps * 32 * each, columns);
      ASSERT_EQ(kNormThreads / 32 % warps, 0U) << columns;
    }
  }
  EXPECT_EQ(norm_backward_shape(DType::kBF16, 16'384, 768), (LaunchShape{.columns = 1024, .threads = 96}));
  EXPECT_EQ(norm_backward_shape(DType::kF32, 5, 768), (LaunchShape{.columns = 2, .threads = 192}));
  EXPECT_EQ(norm_backward_shape(DType::kF32, 0, 33), (LaunchShape{.columns = 1, .threads = 64}));
  // Every column that is held has its thread.
  for (const DType type : {DType::kF32, DType::kBF16}) {
    for (std::size_t columns = 1; columns <= kMostHeldNormColumns; ++columns) {
      const bool whole = whole_vectors(type, columns);
      const std::size_t own = !whole ? kOwnAny : type == DType::kF32 ? kOwnF32 : kOwnBf16;
      const std::size_t each = own * (whole ? wide_elements(type) : 1);
      ASSERT_GE(norm_backward_shape(type, 1, columns).threads * each, columns) << columns;
    }
  }
}

}  // namespace
}  // namespace paceline::cuda
