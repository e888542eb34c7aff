#include "runtime/tensor/cpu/kernels/kernels.h"

#include <limits>

#include "base/dtype.h"
#include "tests/unit/runtime/tensor/cpu/kernels/levels.h"

namespace paceline::tensor::cpu {
namespace {

constexpr std::size_t kSizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 64, 100, 257};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double gelu_oracle(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_slope_oracle(double x) {
  const double root = std::sqrt(2 / M_PI), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

TEST(Kernels, TheBestTableIsTheHighestLevel) {
  EXPECT_EQ(kernels().level, levels().back()->level);
  for (const Kernels* table : levels()) EXPECT_EQ(kernels_for(table->level), table);
}

// Every value of a grid, with the header's bounds.
TEST(Kernels, ActivationsKeepTheirErrorBounds) {
  Floats x;
  for (float v = -30; v < 30; v += 0.00137f) x.push_back(v);
  for (float v : {-1e6f, -88.f, -10.f, -9.9f, -1e-20f, -0.f, 0.f, 1e-20f, 1e-7f, 9.9f, 10.f, 88.f, 1e6f})
    x.push_back(v);
  const Floats ones(x.size(), 1.0f);
  for (const Kernels* k : levels()) {
    SCOPED_TRACE(simd_level_name(k->level));
    Floats tanh(x.size()), gelu(x.size()), slope(x.size());
    k->tanh(x.data(), tanh.data(), x.size());
    k->gelu(x.data(), gelu.data(), x.size());
    k->gelu_backward(x.data(), ones.data(), slope.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = x[i];
      ASSERT_TRUE(std::abs(tanh[i] - std::tanh(v)) <= 2e-7) << v << ": " << tanh[i];
      ASSERT_TRUE(near(gelu[i], gelu_oracle(v), 2e-7)) << v << ": " << gelu[i];
      ASSERT_TRUE(std::abs(slope[i] - gelu_slope_oracle(v)) <= 3e-7) << v << ": " << slope[i];
    }
  }
}

TEST(Kernels, ElementwiseFunctionsAgreeWithTheOracle) {
  Rng rng(1, 0);
  for (std::size_t n : kSizes) {
    SCOPED_TRACE(n);
    const Floats x = random_floats(rng, n, 2), y = random_floats(rng, n);
    at_every_level([&](const Kernels& k) {
      Floats all;
      auto check = [&](const Floats& values, auto oracle) {
        std::vector<double> expected(n);
        for (std::size_t i = 0; i < n; ++i) expected[i] = oracle(x[i], y[i]);
        expect_near(values, expected, 1e-6);
        all.insert(all.end(), values.begin(), values.end());
      };
      Floats out(n);
      k.add(x.data(), y.data(), out.data(), n);
      check(out, [](double a, double b) { return a + b; });
      out = x;
      k.scale(out.data(), -1.25f, n);
      check(out, [](double a, double) { return -1.25 * a; });
      k.relu(x.data(), out.data(), n);
      check(out, [](double a, double) { return a > 0 ? a : 0; });
      k.relu_backward(x.data(), y.data(), out.data(), n);
      check(out, [](double a, double b) { return a > 0 ? b : 0; });
      k.tanh_backward(x.data(), y.data(), out.data(), n);
      check(out, [](double a, double b) { return b * (1 - a * a); });
      k.gelu_backward(x.data(), y.data(), out.data(), n);
      check(out, [](double a, double b) { return b * gelu_slope_oracle(a); });
      out = x;
      k.gelu(out.data(), out.data(), n);  // in place
      check(out, [](double a, double) { return gelu_oracle(a); });
      out = x;
      k.tanh(out.data(), out.data(), n);
      check(out, [](double a, double) { return std::tanh(a); });
      return all;
    });
  }
}

TEST(Kernels, NanNeverDisappears) {
  const Floats x(21, kNan), ones(21, 1.0f);
  for (const Kernels* k : levels()) {
    SCOPED_TRACE(simd_level_name(k->level));
    auto all_nan = [&](auto function) {
      Floats y(21, 0.0f);
      function(y.data());
      for (float v : y) EXPECT_TRUE(std::isnan(v));
    };
    all_nan([&](float* y) { k->relu(x.data(), y, 21); });
    all_nan([&](float* y) { k->relu_backward(x.data(), ones.data(), y, 21); });
    all_nan([&](float* y) { k->tanh(x.data(), y, 21); });
    all_nan([&](float* y) { k->gelu(x.data(), y, 21); });
    all_nan([&](float* y) { k->gelu_backward(x.data(), ones.data(), y, 21); });
    all_nan([&](float* y) { k->add(x.data(), ones.data(), y, 21); });
    EXPECT_TRUE(std::isnan(k->squared_norm(x.data(), 21)));
  }
}

TEST(Kernels, SquaredNormHasTheSameBitsEverywhere) {
  Rng rng(2, 0);
  for (std::size_t n : kSizes) {
    const Floats x = random_floats(rng, n, 100);
    double oracle = 0;
    for (float v : x) oracle += static_cast<double>(v) * v;
    const double reference = levels().front()->squared_norm(x.data(), n);
    EXPECT_TRUE(std::abs(reference - oracle) <= 1e-12 * oracle) << n;
    for (const Kernels* k : levels()) EXPECT_EQ(k->squared_norm(x.data(), n), reference) << n;
  }
}

TEST(Kernels, BFloat16AgreesWithTheSoftwareType) {
  Rng rng(3, 0);
  Floats x = random_floats(rng, 1000);
  for (std::size_t i = 0; i < 500; ++i)
    x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(rng.next_u64()));
  x.push_back(kNan);
  x.push_back(std::numeric_limits<float>::infinity());
  x.push_back(std::bit_cast<float>(0x7f800001u));
  for (const Kernels* k : levels()) {
    std::vector<std::uint16_t> y(x.size());
    Floats back(x.size());
    k->to_bf16(x.data(), y.data(), x.size());
    k->from_bf16(y.data(), back.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], BFloat16(x[i]).bits) << x[i];
      ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]), static_cast<std::uint32_t>(y[i]) << 16);
    }
  }
}

TEST(Kernels, OptimizersHaveTheSameBitsAtBothSimdLevels) {
  Rng rng(4, 0);
  for (std::size_t n : kSizes) {
    const Floats weights = random_floats(rng, n), gradient = random_floats(rng, n);
    at_every_level([&](const Kernels& k) {
      Floats w = weights, m(n), v(n);
      const AdamStep adam{.clip = 0.5f,
                          .step_size = 0.1f,
                          .beta1 = 0.9f,
                          .one_minus_beta1 = 0.1f,
                          .beta2 = 0.99f,
                          .one_minus_beta2 = 0.01f,
                          .root_correction = 3,
                          .epsilon = 1e-8f,
                          .shrink = 0.99f};
      k.adam(adam, w.data(), m.data(), v.data(), gradient.data(), n);
      k.sgd({.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true}, w.data(), m.data(), gradient.data(),
            n);
      Floats sum(n, 0.5f), late(n);
      k.adagrad({.clip = 0.5f, .learning_rate = 0.1f, .epsilon = 1e-8f, .weight_decay = 0.01f}, w.data(),
                sum.data(), gradient.data(), n);
      Floats z = weights, squares(n, 0.25f);
      k.ftrl({.clip = 0.5f, .alpha = 0.1f, .beta = 1, .l1 = 0.5f, .l2 = 0.1f}, w.data(), z.data(),
             squares.data(), gradient.data(), n);
      k.compensate(0.3f, gradient.data(), w.data(), weights.data(), late.data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        const double g = gradient[i], moved = static_cast<double>(w[i]) - weights[i];
        EXPECT_NEAR(late[i], g + 0.3 * g * g * moved, 1e-5);
      }
      w.insert(w.end(), sum.begin(), sum.end());
      w.insert(w.end(), late.begin(), late.end());
      w.insert(w.end(), z.begin(), z.end());
      w.insert(w.end(), squares.begin(), squares.end());
      w.insert(w.end(), m.begin(), m.end());
      w.insert(w.end(), v.begin(), v.end());
      return w;
    });
  }
}

}  // namespace
}  // namespace paceline::tensor::cpu
