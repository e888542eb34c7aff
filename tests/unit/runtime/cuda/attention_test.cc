#include "runtime/cuda/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

// Of themselves: bf16 has 8 bits. On tensor cores shares, and the slopes of scores, are rounded before they
// are summed up.
struct Rounding {
  double results = 0, shares = 0;
};
Rounding rounding_of(DType type, const AttentionShape& s) {
  if (type == DType::kF32) return {};
  const bool on_tensor_cores = s.head_size % 8 == 0 && s.head_size <= 128;
  return {1.0 / 256, on_tensor_cores ? 1.0 / 256 : 0};
}

// In double, from the definition.
struct Oracle {
  Oracle(const AttentionShape& shape, Doubles values, double factor)
      : s(shape), width(std::size_t{shape.heads} * shape.head_size), qkv(std::move(values)), scale(factor) {
    y.assign(std::size_t{s.rows} * s.time * width, 0);
    sizes = y;
    for_queries([&](std::size_t r, std::size_t h, std::size_t t) {
      const Doubles p = shares(r, h, t);
      log_sums.push_back(log_sum);
      for (std::size_t j = 0; j <= t; ++j) {
        for (std::size_t c = 0; c < s.head_size; ++c) {
          const double term = p[j] * qkv[at(2, r, h, j) + c];
          y[result(r, h, t) + c] += term;
          sizes[result(r, h, t) + c] += std::abs(term);
        }
      }
    });
  }
  // `bounds`: by how much the result may be off where y was rounded, or shares and slopes.
  Doubles gradient(const Doubles& dy, const Rounding& rounding, Doubles& bounds) const {
    Doubles d(qkv.size());
    bounds.assign(qkv.size(), 0);
    for_queries([&](std::size_t r, std::size_t h, std::size_t t) {
      const Doubles p = shares(r, h, t);
      Doubles dp(t + 1);
      double mean = 0, mean_bound = 0;  // y dy
      for (std::size_t j = 0; j <= t; ++j) {
        for (std::size_t c = 0; c < s.head_size; ++c)
          dp[j] += dy[result(r, h, t) + c] * qkv[at(2, r, h, j) + c];
        mean += p[j] * dp[j];
      }
      for (std::size_t c = 0; c < s.head_size; ++c) {
        const std::size_t i = result(r, h, t) + c;
        mean_bound += std::abs(dy[i]) * (rounding.results * std::abs(y[i]) + rounding.shares * sizes[i]);
      }
      for (std::size_t j = 0; j <= t; ++j) {
        const double ds = scale * p[j] * (dp[j] - mean);
        const double ds_bound = rounding.shares * std::abs(ds) + scale * p[j] * mean_bound;
        for (std::size_t c = 0; c < s.head_size; ++c) {
          const std::size_t query = at(0, r, h, t) + c, key = at(1, r, h, j) + c, value = at(2, r, h, j) + c;
          const double g = dy[result(r, h, t) + c];
          d[query] += ds * qkv[key];
          d[key] += ds * qkv[query];
          d[value] += p[j] * g;
          bounds[query] += ds_bound * std::abs(qkv[key]);
          bounds[key] += ds_bound * std::abs(qkv[query]);
          bounds[value] += rounding.shares * p[j] * std::abs(g);
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
  // And log_sum.
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
    log_sum = highest + std::log(sum);
    return p;
  }

  AttentionShape s;
  std::size_t width;
  Doubles qkv;
  double scale;
  Doubles y, sizes, log_sums;  // sizes: of what was summed up for each y
  mutable double log_sum = 0;
};

template <typename T>
class AttentionTest : public KernelsTest<Attention> {
 protected:
  struct Result {
    std::vector<T> y, dqkv;
    std::vector<float> statistics;
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
    return {download(y), download(back), download(statistics)};
  }

  void expect_definition(const AttentionShape& s) {
    SCOPED_TRACE(::testing::Message()
                 << s.rows << " rows, time " << s.time << ", " << s.heads << " heads of " << s.head_size);
    const float scale = 1 / std::sqrt(static_cast<float>(s.head_size));
    const std::size_t n = std::size_t{s.rows} * s.time * s.heads * s.head_size;
    const auto qkv = random_values<T>(rng_, 3 * n), dy = random_values<T>(rng_, n);
    const Result got = run(s, qkv, dy, scale);
    const Oracle oracle(s, doubles(qkv), scale);
    const Rounding rounding = rounding_of(kTypeOf<T>, s);
    Doubles bounds = oracle.sizes;
    for (double& bound : bounds) bound *= rounding.shares;
    expect_within("y", got.y, oracle.y, bounds, rounding.results);
    const Doubles gradient = oracle.gradient(doubles(dy), rounding, bounds);
    expect_within("gradient", got.dqkv, gradient, bounds, rounding.results);
    for (std::size_t i = 0; i < oracle.log_sums.size(); ++i) {
      ASSERT_TRUE(std::abs(got.statistics[2 * i] - oracle.log_sums[i]) <= 1e-5) << "log of sum " << i;
      ASSERT_EQ(got.statistics[2 * i + 1], 0.0F);
    }
  }
  // By the arithmetic in fp32, by its last rounding, and by `bounds`, whose own errors are of second order.
  static void expect_within(const char* what, const std::vector<T>& values, const Doubles& expected,
                            const Doubles& bounds, double rounding) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = static_cast<float>(values[i]), size = std::abs(expected[i]);
      ASSERT_TRUE(std::abs(value - expected[i]) <=
                  1e-5 * std::max(1.0, size) + rounding * size + 1.02 * bounds[i])
          << what << ": element " << i << " of " << values.size() << ": " << value << ", expected "
          << expected[i];
    }
  }

  Rng rng_{24, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(AttentionTest, Types);

TYPED_TEST(AttentionTest, IsTheDefinitionsAndSoIsItsGradient) {
  const AttentionShape shapes[] = {{1, 1, 1, 1},   {2, 3, 2, 5},   {1, 33, 1, 64},
                                   {2, 32, 3, 16}, {1, 65, 2, 65}, {1, 40, 1, 256},
                                   {3, 7, 1, 96},  {2, 9, 2, 257}, {1, 34, 1, 520}};
  this->in_both_orders([&] {
    for (const AttentionShape& s : shapes) this->expect_definition(s);
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

class FlashAttentionTest : public AttentionTest<BFloat16> {
 protected:
  using Bits = std::vector<BFloat16>;
  std::size_t runs(const std::string& kernel) { return fake().runs_of(kernel); }
  // The GPU is one of that compute capability, times ten, from here on.
  void be(int capability) {
    kernels_.reset();
    stream_.reset();
    context_.reset();
    fake().control().capability = capability;
    context_ = must(Context::open(must(Driver::open(test_driver())), 0));
    stream_ = std::make_unique<Stream>(must(Stream::create(context_)));
    kernels_.emplace(must(Attention::load(context_)));
  }
  // The name of what a pass forward and backward runs; "": not on tensor cores.
  std::string kernel_for(std::uint32_t head_size) {
    const std::string kernels[] = {"flash_attention", "hopper_attention"}, sizes[] = {"_64", "_128"};
    std::vector<std::pair<std::string, std::size_t>> before;
    const auto count = [&](const std::string& kernel, const std::string& size) {
      return runs(kernel + size) + runs(kernel + "_queries" + size) + runs(kernel + "_keys" + size);
    };
    for (const std::string& kernel : kernels) {
      for (const std::string& size : sizes) before.emplace_back(kernel + size, count(kernel, size));
    }
    run({1, 2, 1, head_size}, Bits(6 * std::size_t{head_size}), Bits(2 * std::size_t{head_size}), 1);
    std::string found;
    std::size_t i = 0;
    for (const std::string& kernel : kernels) {
      for (const std::string& size : sizes) {
        const auto& [name, was] = before[i++];
        const std::size_t more = count(kernel, size) - was;
        EXPECT_TRUE(more == 0 || more == 3) << name;
        if (more == 3) found += name;
      }
    }
    return found;
  }
};

// Around the ends of tiles, steps and blocks; several rows and heads; vectors that are filled up.
TEST_F(FlashAttentionTest, UnevenTimesRowsAndHeads) {
  const AttentionShape shapes[] = {{2, 1, 2, 64},   {1, 15, 1, 64}, {1, 16, 1, 128}, {2, 17, 2, 40},
                                   {1, 63, 2, 64},  {1, 64, 1, 64}, {1, 65, 1, 128}, {1, 130, 1, 64},
                                   {1, 131, 1, 72}, {1, 130, 2, 8}};
  for (const int capability : {80, 90}) {
    SCOPED_TRACE(capability);
    if (!on_real_gpu()) be(capability);
    in_both_orders([&] {
      for (const AttentionShape& s : shapes) expect_definition(s);
    });
  }
}

TEST_F(FlashAttentionTest, TakesHalvesOfAtMost128InEights) {
  PL_EMULATED_ONLY();
  for (const int capability : {80, 90}) {
    SCOPED_TRACE(capability);
    be(capability);
    const std::string small = capability == 90 ? "hopper_attention_64" : "flash_attention_64";
    for (const std::uint32_t size : {8U, 16U, 64U}) EXPECT_EQ(kernel_for(size), small) << size;
    for (const std::uint32_t size : {72U, 128U}) EXPECT_EQ(kernel_for(size), "flash_attention_128") << size;
    for (const std::uint32_t size : {4U, 65U, 136U, 256U}) EXPECT_EQ(kernel_for(size), "") << size;
  }
}

TEST_F(FlashAttentionTest, TheSameBitsFromRunToRun) {
  const AttentionShape s{1, 70, 2, 64};
  const auto qkv = random_values<BFloat16>(rng_, 3 * 70 * 128), dy = random_values<BFloat16>(rng_, 70 * 128);
  const Result first = run(s, qkv, dy, 0.125F);
  if (!on_real_gpu()) fake().control().order = fake_cuda::Order::kDescending;
  const Result second = run(s, qkv, dy, 0.125F);
  EXPECT_TRUE(same_bits(first.y, second.y));
  EXPECT_TRUE(same_bits(first.dqkv, second.dqkv));
  EXPECT_TRUE(same_bits(first.statistics, second.statistics));
}

// A value of position 70, head 1, row 1: all that comes later in its place is NaN, and nothing of another row
// or head.
TEST_F(FlashAttentionTest, ANanStaysInItsRowAndHead) {
  const AttentionShape s{2, 100, 2, 16};
  auto qkv = random_values<BFloat16>(rng_, std::size_t{2} * 100 * 96);
  const auto dy = random_values<BFloat16>(rng_, std::size_t{2} * 100 * 32);
  const std::size_t position = 100 + 70;
  qkv[position * 96 + 64 + 16] = BFloat16(std::numeric_limits<float>::quiet_NaN());
  const Result got = run(s, qkv, dy, 0.25F);
  const auto expect = [](BFloat16 x, bool may, bool must_be, std::size_t t, std::size_t c) {
    const bool is = std::isnan(static_cast<float>(x));
    EXPECT_TRUE(is ? may : !must_be) << "position " << t << ", element " << c << ": " << is;
  };
  for (std::size_t t = 0; t < 200; ++t) {
    const bool later = t >= position;
    for (std::size_t c = 0; c < 32; ++c)
      expect(got.y[t * 32 + c], t >= 100 && c == 16, later && c == 16, t, c);
    for (std::size_t c = 0; c < 96; ++c) {
      const bool query = c >= 16 && c < 32;
      expect(got.dqkv[t * 96 + c], t >= 100 && c % 32 >= 16, later && query, t, c);
    }
  }
}

// Their shared memory is what GPUs of compute capability 8.6 and 8.9 have, too, the least of all.
TEST_F(FlashAttentionTest, FindsRoomOnEveryGpu) {
  PL_EMULATED_ONLY();
  be(80);
  fake().control().shared_bytes = 101376;
  EXPECT_TRUE(Attention::load(context_).ok());
  fake().control().shared_bytes = 49152;
  EXPECT_THAT(std::string(Attention::load(context_).status().message()),
              ::testing::HasSubstr("bytes of shared memory: cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE"));
}

// Every block has a place of its own, of some heads all before others, and of those the longest first.
TEST(FlashAttentionTurns, LongestFirstOfTheHeadsThatShareTheCache) {
  const AttentionShape shapes[] = {{1, 1, 1, 8}, {3, 300, 5, 64}, {2, 40000, 3, 128}, {7, 20000, 1, 64}};
  for (const AttentionShape& s : shapes) {
    const std::size_t turns = (s.time + 127) / 128, heads = std::size_t{s.rows} * s.heads;
    const std::size_t fit = kFlashCacheBytes / (std::size_t{s.time} * s.head_size * 4) + 1;
    std::vector<int> seen(turns * heads);
    FlashTurn last;
    for (std::size_t block = 0; block < turns * heads; ++block) {
      const FlashTurn turn = flash_turn(s, 128, block);
      ASSERT_LT(turn.row_head, heads);
      ASSERT_LT(turn.turn, turns);
      ++seen[turn.row_head * turns + turn.turn];
      const std::size_t group = turn.row_head / fit, last_group = last.row_head / fit;
      ASSERT_TRUE(group > last_group || (group == last_group && turn.turn >= last.turn)) << block;
      last = turn;
    }
    ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(seen.size()));
  }
}

}  // namespace
}  // namespace paceline::cuda
