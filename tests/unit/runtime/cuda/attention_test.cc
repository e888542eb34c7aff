#include "runtime/cuda/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

// In double, from the definition.
struct Oracle {
  Oracle(const AttentionShape& shape, Doubles values, double factor)
      : s(shape), width(std::size_t{shape.heads} * shape.head_size), qkv(std::move(values)), scale(factor) {
    y.assign(std::size_t{s.rows} * s.time * width, 0);
    for_queries([&](std::size_t r, std::size_t h, std::size_t t) {
      const Doubles p = shares(r, h, t);
      for (std::size_t j = 0; j <= t; ++j) {
        for (std::size_t c = 0; c < s.head_size; ++c)
          y[result(r, h, t) + c] += p[j] * qkv[at(2, r, h, j) + c];
      }
    });
  }
  Doubles gradient(const Doubles& dy) const {
    Doubles d(qkv.size());
    for_queries([&](std::size_t r, std::size_t h, std::size_t t) {
      const Doubles p = shares(r, h, t);
      Doubles dp(t + 1);
      double mean = 0;
      for (std::size_t j = 0; j <= t; ++j) {
        for (std::size_t c = 0; c < s.head_size; ++c)
          dp[j] += dy[result(r, h, t) + c] * qkv[at(2, r, h, j) + c];
        mean += p[j] * dp[j];
      }
      for (std::size_t j = 0; j <= t; ++j) {
        const double ds = scale * p[j] * (dp[j] - mean);
        for (std::size_t c = 0; c < s.head_size; ++c) {
          d[at(0, r, h, t) + c] += ds * qkv[at(1, r, h, j) + c];
          d[at(1, r, h, j) + c] += ds * qkv[at(0, r, h, t) + c];
          d[at(2, r, h, j) + c] += p[j] * dy[result(r, h, t) + c];
        }
      }
    });
    return d;
  }

  template <typename Each>
  void for_queries(Each each) const {
    for (std::size_t r = 0; r < s.rows; ++r) {
      for (std::size_t h = 0; h < s.heads; ++h) {
        for (std::size_t t = 0; t < s.time; ++t) each(r, h, t);
      }
    }
  }
  std::size_t at(std::size_t part, std::size_t r, std::size_t h, std::size_t t) const {
    return (r * s.time + t) * 3 * width + part * width + h * s.head_size;
  }
  std::size_t result(std::size_t r, std::size_t h, std::size_t t) const {
    return (r * s.time + t) * width + h * s.head_size;
  }
  Doubles shares(std::size_t r, std::size_t h, std::size_t t) const {
    Doubles p(t + 1);
    double highest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t j = 0; j <= t; ++j) {
      for (std::size_t c = 0; c < s.head_size; ++c) p[j] += qkv[at(0, r, h, t) + c] * qkv[at(1, r, h, j) + c];
      p[j] *= scale;
      highest = std::max(highest, p[j]);
    }
    for (double& x : p) sum += x = std::exp(x - highest);
    for (double& x : p) x /= sum;
    return p;
  }

  AttentionShape s;
  std::size_t width;
  Doubles qkv;
  double scale;
  Doubles y;
};

template <typename T>
class AttentionTest : public GpuTest {
 protected:
  AttentionTest() : kernels_(must(Attention::load(context_))) {}
  void TearDown() override {
    kernels_.reset();
    GpuTest::TearDown();
  }

  struct Result {
    std::vector<T> y, dqkv;
  };
  Result run(const AttentionShape& shape, const std::vector<T>& qkv, const std::vector<T>& dy, float scale) {
    const auto in = upload(qkv), gradient = upload(dy), y = array<T>(dy.size()), back = array<T>(qkv.size());
    const std::size_t queries = Attention::products(shape);
    const auto statistics = array<float>(2 * queries), products = array<float>(queries);
    EXPECT_TRUE(kernels_
                    ->forward(*stream_, kTypeOf<T>,
                              {.qkv = in.data(),
                               .y = y.data(),
                               .statistics = statistics.data(),
                               .shape = shape,
                               .scale = scale})
                    .ok());
    EXPECT_TRUE(kernels_
                    ->backward(*stream_, kTypeOf<T>,
                               {.qkv = in.data(),
                                .y = y.data(),
                                .dy = gradient.data(),
                                .statistics = statistics.data(),
                                .products = products.data(),
                                .dqkv = back.data(),
                                .shape = shape,
                                .scale = scale})
                    .ok());
    return {download(y), download(back)};
  }

  std::optional<Attention> kernels_;
  Rng rng_{24, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(AttentionTest, Types);

// A gradient is made of y as it was rounded: in bf16 its products with dy, which are taken from every score's
// slope, are off by up to 2^-9 of y dy for each of head_size elements.
TYPED_TEST(AttentionTest, IsTheDefinitionsAndSoIsItsGradient) {
  using T = TypeParam;
  const AttentionShape shapes[] = {{1, 1, 1, 1},   {2, 3, 2, 5},    {1, 33, 1, 64}, {2, 32, 3, 16},
                                   {1, 65, 2, 65}, {1, 40, 1, 256}, {3, 7, 1, 96}};
  this->in_both_orders([&] {
    for (const AttentionShape& s : shapes) {
      SCOPED_TRACE(::testing::Message()
                   << s.rows << " rows, time " << s.time << ", " << s.heads << " heads of " << s.head_size);
      const float scale = 1 / std::sqrt(static_cast<float>(s.head_size));
      const std::size_t n = std::size_t{s.rows} * s.time * s.heads * s.head_size;
      const auto qkv = random_values<T>(this->rng_, 3 * n), dy = random_values<T>(this->rng_, n);
      const auto got = this->run(s, qkv, dy, scale);
      const Oracle oracle(s, doubles(qkv), scale);
      expect_near(got.y, oracle.y, 2e-6);
      const double rounding = kTypeOf<T> == DType::kBF16 ? std::sqrt(s.head_size) / 512 : 0;
      expect_near(got.dqkv, oracle.gradient(doubles(dy)), 1e-5 + rounding);
    }
  });
}

// e^1000 is no float.
TYPED_TEST(AttentionTest, LargeScoresStayFinite) {
  using T = TypeParam;
  const AttentionShape s{1, 35, 1, 8};
  const auto qkv = random_values<T>(this->rng_, 3 * 35 * 8, 30), dy = random_values<T>(this->rng_, 35 * 8);
  const auto got = this->run(s, qkv, dy, 1);
  const Oracle oracle(s, doubles(qkv), 1);
  expect_near(got.y, oracle.y, 1e-3, 100);
  for (const T& x : got.dqkv) EXPECT_TRUE(std::isfinite(static_cast<float>(x)));
}

TYPED_TEST(AttentionTest, ANanReachesLaterPositionsOnly) {
  using T = TypeParam;
  const AttentionShape s{1, 6, 1, 4};
  auto qkv = random_values<T>(this->rng_, 3 * 6 * 4);
  qkv[2 * 12 + 4] = T(std::numeric_limits<float>::quiet_NaN());  // a key of position 2
  const Doubles y = doubles(this->run(s, qkv, random_values<T>(this->rng_, 6 * 4), 0.5F).y);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 4 >= 2) << i;
}

TYPED_TEST(AttentionTest, LargerHeadsAreRefused) {
  const AttentionShape s{1, 1, 1, kMostHeadSize + 1};
  const absl::Status status = this->kernels_->forward(*this->stream_, DType::kF32, {.shape = s});
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_EQ(status.message(), "attention with heads of 257; the GPU's takes at most 256");
}

}  // namespace
}  // namespace paceline::cuda
