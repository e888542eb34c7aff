#include "tests/unit/runtime/tensor/cpu/kernels/levels.h"

namespace paceline::tensor::cpu {
namespace {

struct Result {
  std::vector<double> out, dqkv;
};

// The textbook, one head of one sample at a time, in double.
Result oracle(const AttentionShape& s, const std::vector<double>& qkv, const Floats& dout) {
  const std::size_t width = s.heads * s.head_size;
  Result result{std::vector<double>(s.batch * s.time * width), std::vector<double>(qkv.size())};
  const double factor = 1 / std::sqrt(static_cast<double>(s.head_size));
  for (std::size_t b = 0; b < s.batch; ++b) {
    for (std::size_t h = 0; h < s.heads; ++h) {
      auto at = [&](std::size_t t, std::size_t part, std::size_t i) {
        return ((b * s.time + t) * 3 + part) * width + h * s.head_size + i;
      };
      auto out_at = [&](std::size_t t, std::size_t i) {
        return (b * s.time + t) * width + h * s.head_size + i;
      };
      for (std::size_t t = 0; t < s.time; ++t) {
        std::vector<double> p(t + 1), dp(t + 1);
        double mass = 0, mean = 0;
        for (std::size_t u = 0; u <= t; ++u) {
          double score = 0;
          for (std::size_t i = 0; i < s.head_size; ++i) score += qkv[at(t, 0, i)] * qkv[at(u, 1, i)];
          mass += p[u] = std::exp(score * factor);
        }
        for (std::size_t u = 0; u <= t; ++u) {
          p[u] /= mass;
          for (std::size_t i = 0; i < s.head_size; ++i) {
            result.out[out_at(t, i)] += p[u] * qkv[at(u, 2, i)];
            dp[u] += dout[out_at(t, i)] * qkv[at(u, 2, i)];
            result.dqkv[at(u, 2, i)] += p[u] * dout[out_at(t, i)];
          }
          mean += p[u] * dp[u];
        }
        for (std::size_t u = 0; u <= t; ++u) {
          const double ds = p[u] * (dp[u] - mean) * factor;
          for (std::size_t i = 0; i < s.head_size; ++i) {
            result.dqkv[at(t, 0, i)] += ds * qkv[at(u, 1, i)];
            result.dqkv[at(u, 1, i)] += ds * qkv[at(t, 0, i)];
          }
        }
      }
    }
  }
  return result;
}

constexpr AttentionShape kShapes[] = {{1, 1, 1, 1},   {2, 5, 1, 3},   {1, 16, 2, 16}, {2, 17, 3, 20},
                                      {1, 64, 4, 32}, {1, 70, 2, 33}, {1, 33, 1, 64}, {3, 8, 2, 8}};

TEST(Attention, AgreesWithTheOracleForwardAndBackward) {
  Rng rng(1, 0);
  for (const AttentionShape& s : kShapes) {
    SCOPED_TRACE(::testing::Message()
                 << s.batch << " x " << s.time << ", " << s.heads << " x " << s.head_size);
    const std::size_t rows = s.batch * s.time, width = s.heads * s.head_size;
    const Floats qkv = random_floats(rng, rows * 3 * width), dout = random_floats(rng, rows * width);
    const Result expected = oracle(s, std::vector<double>(qkv.begin(), qkv.end()), dout);
    at_every_level([&](const Kernels& k) {
      const float poison = std::numeric_limits<float>::quiet_NaN();
      Floats out(rows * width, poison), stats(rows * s.heads * 2, poison), dqkv(qkv.size(), poison);
      Floats scratch(attention_scratch(s), poison);  // nothing is read before it is written
      k.attention(s, qkv.data(), out.data(), stats.data(), scratch.data());
      expect_near(out, expected.out, 3e-6);
      std::fill(scratch.begin(), scratch.end(), poison);
      k.attention_backward(s, qkv.data(), stats.data(), dout.data(), dqkv.data(), scratch.data());
      expect_near(dqkv, expected.dqkv, 1e-5);
      out.insert(out.end(), dqkv.begin(), dqkv.end());
      return out;
    });
  }
}

// Each position is computed alone, with the keys and values of those before it in a cache.
TEST(CachedAttention, AgreesWithTheOracle) {
  Rng rng(1, 4);
  for (const AttentionShape& s : kShapes) {
    if (s.batch != 1) continue;
    SCOPED_TRACE(::testing::Message() << s.time << ", " << s.heads << " x " << s.head_size);
    const std::size_t width = s.heads * s.head_size;
    const Floats qkv = random_floats(rng, s.time * 3 * width);
    const Result expected =
        oracle(s, std::vector<double>(qkv.begin(), qkv.end()), Floats(s.time * width, 0.0F));
    at_every_level([&](const Kernels& k) {
      const float poison = std::numeric_limits<float>::quiet_NaN();
      Floats out(s.time * width, poison), cache(s.time * 2 * width, poison);
      for (std::size_t t = 0; t < s.time; ++t) {
        const float* const row = qkv.data() + t * 3 * width;
        std::copy_n(row + width, 2 * width, cache.begin() + static_cast<std::ptrdiff_t>(t * 2 * width));
        Floats scratch(t + 1, poison);
        k.cached_attention(s.heads, s.head_size, t + 1, row, cache.data(), out.data() + t * width,
                           scratch.data());
      }
      expect_near(out, expected.out, 3e-6);
      return out;
    });
  }
}

TEST(CachedAttention, LargeScoresDoNotOverflow) {
  for (const Kernels* const k : levels()) {
    Floats out(4), scratch(2);
    const Floats qkv = {1e4F, 1e4F, 1e4F, 1e4F, 0, 0, 0, 0, 0, 0, 0, 0};
    const Floats cache = {1e4F, 1e4F, 1e4F, 1e4F, 1, 2, 3, 4, -1e4F, -1e4F, -1e4F, -1e4F, 5, 6, 7, 8};
    k->cached_attention(1, 4, 2, qkv.data(), cache.data(), out.data(), scratch.data());
    EXPECT_EQ(out, (Floats{1, 2, 3, 4}));
  }
}

// The oracle itself: its gradient against finite differences.
TEST(Attention, TheOraclesGradientIsTheSlope) {
  Rng rng(2, 0);
  const AttentionShape s{1, 4, 2, 3};
  const Floats start = random_floats(rng, 4 * 18), dout = random_floats(rng, 4 * 6);
  std::vector<double> qkv(start.begin(), start.end());
  const Result at = oracle(s, qkv, dout);
  auto loss = [&] {
    const Result r = oracle(s, qkv, dout);
    double total = 0;
    for (std::size_t i = 0; i < r.out.size(); ++i) total += r.out[i] * dout[i];
    return total;
  };
  for (std::size_t i = 0; i < qkv.size(); ++i) {
    const double h = 1e-5, x = qkv[i];
    qkv[i] = x + h;
    const double above = loss();
    qkv[i] = x - h;
    const double below = loss();
    qkv[i] = x;
    EXPECT_TRUE(near(at.dqkv[i], (above - below) / (2 * h), 1e-8)) << i;
  }
}

TEST(Attention, LaterTokensDoNotReachEarlierOnes) {
  Rng rng(3, 0);
  const AttentionShape s{1, 40, 2, 16};
  const Floats qkv = random_floats(rng, 40 * 96);
  for (const Kernels* k : levels()) {
    Floats changed = qkv, a(40 * 32), b(40 * 32), stats(40 * 4), scratch(attention_scratch(s));
    for (std::size_t i = 25 * 96; i < changed.size(); ++i) changed[i] += 1;
    k->attention(s, qkv.data(), a.data(), stats.data(), scratch.data());
    k->attention(s, changed.data(), b.data(), stats.data(), scratch.data());
    EXPECT_TRUE(std::equal(a.begin(), a.begin() + 25 * 32, b.begin()));
    EXPECT_FALSE(std::equal(a.begin() + 25 * 32, a.end(), b.begin() + 25 * 32));
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const AttentionShape s{1, 20, 1, 4};
  const Floats qkv(20 * 12, 1e6f);
  for (const Kernels* k : levels()) {
    Floats out(80), stats(40), scratch(attention_scratch(s));
    k->attention(s, qkv.data(), out.data(), stats.data(), scratch.data());
    for (float v : out) EXPECT_TRUE(near(v, 1e6, 1e-5)) << v;
  }
}

}  // namespace
}  // namespace paceline::tensor::cpu
