#include "runtime/cuda/cached_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

struct CachedShape {
  std::uint32_t positions = 0, heads = 0, head_size = 0;
  std::size_t width() const { return std::size_t{heads} * head_size; }
};

// In double, from the definition: of the position behind the last row of `before`, {keys, values} each.
Doubles attention(const CachedShape& s, const Doubles& qkv, const Doubles& before, double scale) {
  const std::size_t width = s.width(), rows = before.size() / (2 * width);
  Doubles cache = before;
  cache.insert(cache.end(), qkv.begin() + static_cast<std::ptrdiff_t>(width), qkv.end());
  Doubles y(width);
  for (std::size_t h = 0; h < s.heads; ++h) {
    Doubles shares(rows + 1);
    double highest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t t = 0; t <= rows; ++t) {
      for (std::size_t c = h * s.head_size; c < (h + 1) * s.head_size; ++c)
        shares[t] += scale * qkv[c] * cache[t * 2 * width + c];
      highest = std::max(highest, shares[t]);
    }
    for (double& share : shares) sum += share = std::exp(share - highest);
    for (std::size_t t = 0; t <= rows; ++t) {
      for (std::size_t c = h * s.head_size; c < (h + 1) * s.head_size; ++c)
        y[c] += shares[t] / sum * cache[t * 2 * width + width + c];
    }
  }
  return y;
}

template <typename T>
class CachedAttentionTest : public KernelsTest<CachedAttention> {
 protected:
  struct Result {
    std::vector<T> y, cache;
  };
  Result attend(const CachedShape& s, const std::vector<T>& qkv, const std::vector<T>& cache,
                std::int32_t position, float scale) {
    const auto in = upload(qkv), kept = upload(cache), y = array<T>(s.width());
    const auto scores = array<float>(CachedAttention::scores(s.heads, s.positions));
    const auto place = upload(std::vector<std::int32_t>{position});
    EXPECT_TRUE(kernels_
                    ->attend(*stream_, kTypeOf<T>,
                             {.qkv = in.data(),
                              .cache = kept.data(),
                              .position = place.data(),
                              .y = y.data(),
                              .scores = scores.data(),
                              .positions = s.positions,
                              .heads = s.heads,
                              .head_size = s.head_size,
                              .scale = scale})
                    .ok());
    return {download(y), download(kept)};
  }

  Rng rng_{25, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(CachedAttentionTest, Types);

// Heads of every size: less than a warp's, more than it adds up at a time. What is behind the position is not
// read.
TYPED_TEST(CachedAttentionTest, IsTheDefinitionsAtEveryPosition) {
  using T = TypeParam;
  const CachedShape shapes[] = {{1, 1, 1}, {40, 2, 5}, {70, 3, 16}, {33, 1, 64}, {5, 2, 65}, {18, 1, 300}};
  this->in_both_orders([&] {
    for (const CachedShape& s : shapes) {
      for (const std::uint32_t seen : {0U, s.positions / 2, s.positions - 1}) {
        SCOPED_TRACE(::testing::Message() << s.heads << " heads of " << s.head_size << ", position " << seen);
        const float scale = 1 / std::sqrt(static_cast<float>(s.head_size));
        const std::size_t row = 2 * s.width();
        const auto qkv = random_values<T>(this->rng_, 3 * s.width());
        auto cache = random_values<T>(this->rng_, seen * row);
        const Doubles before = doubles(cache);
        cache.resize(s.positions * row, T(kNan));
        const auto got = this->attend(s, qkv, cache, static_cast<std::int32_t>(seen), scale);
        expect_near(got.y, attention(s, doubles(qkv), before, static_cast<double>(scale)), 1e-5);
        std::copy(qkv.begin() + static_cast<std::ptrdiff_t>(s.width()), qkv.end(),
                  cache.begin() + static_cast<std::ptrdiff_t>(seen * row));
        EXPECT_TRUE(same_bits(got.cache, cache));
      }
    }
  });
}

// e^1000 is no float.
TYPED_TEST(CachedAttentionTest, LargeScoresStayFinite) {
  using T = TypeParam;
  const CachedShape s{35, 1, 8};
  const auto qkv = random_values<T>(this->rng_, 24, 30);
  auto cache = random_values<T>(this->rng_, std::size_t{34} * 16, 30);
  const Doubles before = doubles(cache);
  cache.resize(std::size_t{35} * 16);
  expect_near(this->attend(s, qkv, cache, 34, 1).y, attention(s, doubles(qkv), before, 1), 1e-3, 100);
}

TYPED_TEST(CachedAttentionTest, ANanReachesItsHeadAlone) {
  using T = TypeParam;
  const CachedShape s{6, 2, 4};
  const auto qkv = random_values<T>(this->rng_, 24);
  auto cache = random_values<T>(this->rng_, std::size_t{6} * 16);
  cache[2 * 16 + 4] = T(kNan);  // a key of position 2, head 1
  const Doubles y = doubles(this->attend(s, qkv, cache, 4, 0.5F).y);
  for (std::size_t c = 0; c < y.size(); ++c) EXPECT_EQ(std::isnan(y[c]), c >= 4) << c;
}

TYPED_TEST(CachedAttentionTest, APositionBeyondTheCacheIsNan) {
  using T = TypeParam;
  const CachedShape s{3, 2, 4};
  const auto qkv = random_values<T>(this->rng_, 24),
             cache = random_values<T>(this->rng_, std::size_t{3} * 16);
  for (const std::int32_t position : {-1, 3, 1 << 30}) {
    const auto got = this->attend(s, qkv, cache, position, 0.5F);
    for (const double y : doubles(got.y)) EXPECT_TRUE(std::isnan(y));
    EXPECT_TRUE(same_bits(got.cache, cache));
  }
}

TYPED_TEST(CachedAttentionTest, KeepsKeysAndValuesOfAllPositions) {
  using T = TypeParam;
  constexpr std::uint32_t kTime = 37, kWidth = 10;
  const auto qkv = random_values<T>(this->rng_, std::size_t{kTime} * 3 * kWidth);
  std::vector<T> expected;
  for (std::size_t t = 0; t < kTime; ++t) {
    const auto row = qkv.begin() + static_cast<std::ptrdiff_t>(t * 3 * kWidth);
    expected.insert(expected.end(), row + kWidth, row + 3 * kWidth);
  }
  this->in_both_orders([&] {
    const auto in = this->upload(qkv), cache = this->template array<T>(expected.size());
    EXPECT_TRUE(this->kernels_
                    ->keep(*this->stream_, kTypeOf<T>,
                           {.qkv = in.data(), .cache = cache.data(), .time = kTime, .width = kWidth})
                    .ok());
    EXPECT_TRUE(same_bits(this->download(cache), expected));
  });
}

}  // namespace
}  // namespace paceline::cuda
