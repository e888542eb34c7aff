// Kernels over the rows of a matrix: biases, layer norm, cross-entropy, embeddings.

#include <limits>

#include "tests/unit/runtime/tensor/cpu/kernels/levels.h"

namespace paceline::tensor::cpu {
namespace {

struct Shape {
  std::size_t rows, columns;
};
constexpr Shape kMatrices[] = {{1, 1}, {3, 5}, {7, 16}, {4, 33}, {9, 64}, {5, 100}, {6, 130}, {2, 257}};

void append(Floats& all, const Floats& more) {
  all.insert(all.end(), more.begin(), more.end());
}

TEST(Rows, BiasesAndColumnSums) {
  Rng rng(1, 0);
  for (auto [rows, columns] : kMatrices) {
    const Floats x = random_floats(rng, rows * columns), bias = random_floats(rng, columns);
    std::vector<double> added(rows * columns), sums(columns), more(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t r = 0; r < rows; ++r) {
        added[r * columns + c] = static_cast<double>(x[r * columns + c]) + bias[c];
        sums[c] += x[r * columns + c];
      }
      more[c] = sums[c] + bias[c];
    }
    at_every_level([&, rows = rows, columns = columns](const Kernels& k) {
      Floats y = x, s(columns, std::numeric_limits<float>::quiet_NaN()), t = bias;
      k.add_bias(y.data(), bias.data(), rows, columns);
      expect_near(y, added, 1e-6);
      k.column_sums(x.data(), s.data(), false, rows, columns);
      expect_near(s, sums, 2e-6);
      k.column_sums(x.data(), t.data(), true, rows, columns);
      expect_near(t, more, 2e-6);
      append(y, s);
      append(y, t);
      return y;
    });
  }
}

struct Norm {
  std::vector<double> y, dx, gain_gradient, bias_gradient;
};

Norm layer_norm_oracle(const std::vector<double>& x, const Floats& gain, const Floats& bias, const Floats& dy,
                       std::size_t rows, std::size_t columns) {
  Norm n{std::vector<double>(x.size()), std::vector<double>(x.size()), std::vector<double>(columns),
         std::vector<double>(columns)};
  const auto count = static_cast<double>(columns);
  for (std::size_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0, g_mean = 0, gh_mean = 0;
    for (std::size_t c = 0; c < columns; ++c) mean += x[r * columns + c] / count;
    for (std::size_t c = 0; c < columns; ++c) variance += std::pow(x[r * columns + c] - mean, 2) / count;
    const double inverse = 1 / std::sqrt(variance + 1e-5);
    std::vector<double> h(columns), g(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t i = r * columns + c;
      h[c] = (x[i] - mean) * inverse;
      g[c] = static_cast<double>(dy[i]) * gain[c];
      n.y[i] = h[c] * gain[c] + bias[c];
      g_mean += g[c] / count;
      gh_mean += g[c] * h[c] / count;
      n.gain_gradient[c] += dy[i] * h[c];
      n.bias_gradient[c] += dy[i];
    }
    for (std::size_t c = 0; c < columns; ++c)
      n.dx[r * columns + c] = inverse * (g[c] - g_mean - h[c] * gh_mean);
  }
  return n;
}

TEST(Rows, LayerNormWithAndWithoutResidual) {
  Rng rng(2, 0);
  for (auto [rows, columns] : kMatrices) {
    if (columns == 1)
      continue;  // a single value has no deviation: the gradient is noise times 1 / sqrt(epsilon)
    for (bool fused : {false, true}) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << columns << (fused ? " with residual" : ""));
      const std::size_t n = rows * columns;
      const Floats x = random_floats(rng, n, 2), residual = random_floats(rng, n), dy = random_floats(rng, n);
      const Floats gain = random_floats(rng, columns), bias = random_floats(rng, columns);
      std::vector<double> total(n);
      for (std::size_t i = 0; i < n; ++i) total[i] = fused ? static_cast<double>(x[i]) + residual[i] : x[i];
      const Norm oracle = layer_norm_oracle(total, gain, bias, dy, rows, columns);
      at_every_level([&, rows = rows, columns = columns](const Kernels& k) {
        Floats sum(n), y(n), means(rows), inverses(rows), dx = residual, dgain(columns, 0.f),
                                                          dbias(columns, 0.f);
        k.layer_norm(x.data(), fused ? residual.data() : nullptr, fused ? sum.data() : nullptr, gain.data(),
                     bias.data(), y.data(), means.data(), inverses.data(), 1e-5f, rows, columns);
        expect_near(y, oracle.y, 3e-6);
        k.layer_norm_backward(fused ? sum.data() : x.data(), gain.data(), means.data(), inverses.data(),
                              dy.data(), fused ? dx.data() : nullptr, dx.data(), dgain.data(), dbias.data(),
                              rows, columns);
        std::vector<double> expected = oracle.dx;
        for (std::size_t i = 0; i < n && fused; ++i) expected[i] += residual[i];
        expect_near(dx, expected, 2e-5);
        expect_near(dgain, oracle.gain_gradient, 1e-5);
        expect_near(dbias, oracle.bias_gradient, 1e-5);
        append(y, dx);
        append(y, dgain);
        append(y, dbias);
        return y;
      });
    }
  }
}

TEST(Rows, CrossEntropyAndItsGradient) {
  Rng rng(3, 0);
  for (auto [rows, classes] : kMatrices) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << classes);
    const Floats logits = random_floats(rng, rows * classes, 4);
    std::vector<std::int32_t> labels(rows);
    for (auto& label : labels) label = static_cast<std::int32_t>(rng.below(classes));
    double loss = 0;
    std::int64_t correct = 0;
    std::vector<double> gradient(rows * classes);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* row = logits.data() + r * classes;
      const auto label = static_cast<std::size_t>(labels[r]);
      double mass = 0;
      for (std::size_t c = 0; c < classes; ++c) mass += std::exp(static_cast<double>(row[c]));
      for (std::size_t c = 0; c < classes; ++c)
        gradient[r * classes + c] = std::exp(static_cast<double>(row[c])) / mass;
      gradient[r * classes + label] -= 1;
      loss += std::log(mass) - row[label];
      correct += std::max_element(row, row + classes) == row + label;
    }
    at_every_level([&, rows = rows, classes = classes](const Kernels& k) {
      Floats copy = logits;
      const LossSum only = k.cross_entropy(logits.data(), labels.data(), rows, classes);
      const LossSum both = k.cross_entropy_gradient(copy.data(), labels.data(), rows, classes);
      EXPECT_TRUE(near(only.loss, loss, 2e-6)) << only.loss;
      EXPECT_EQ(only.loss, both.loss);
      EXPECT_EQ(only.correct, correct);
      EXPECT_EQ(both.correct, correct);
      expect_near(copy, gradient, 1e-6);
      copy.push_back(static_cast<float>(only.loss));
      return copy;
    });
  }
}

TEST(Rows, CrossEntropyOfHardCases) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    const char* what;
    Floats logits;
    std::int32_t label;
    double loss;  // NaN: must be NaN
    std::int64_t correct;
  };
  const Case cases[] = {
      {"far apart", {0, 1000, -1000}, 1, 0, 1},
      {"certain of the wrong one", {0, 80, 0}, 0, 80, 0},
      {"equal: the first of them", {2, 2, 2}, 0, std::log(3.0), 1},
      {"equal: not the second", {2, 2, 2}, 1, std::log(3.0), 0},
      {"huge", {1e30f, 1e30f}, 0, std::log(2.0), 1},
      {"a NaN elsewhere", {5, nan, 0}, 0, nan, 0},
      {"the label's NaN", {nan, 1, 0}, 0, nan, 0},
      {"infinite", {inf, 1, 0}, 0, nan, 0},
  };
  for (const Kernels* k : levels()) {
    for (const Case& c : cases) {
      SCOPED_TRACE(::testing::Message() << simd_level_name(k->level) << ": " << c.what);
      const LossSum total = k->cross_entropy(c.logits.data(), &c.label, 1, c.logits.size());
      EXPECT_EQ(total.correct, c.correct);
      EXPECT_TRUE(std::isnan(c.loss) ? std::isnan(total.loss) : near(total.loss, c.loss, 1e-6)) << total.loss;
    }
  }
}

TEST(Rows, Embeddings) {
  Rng rng(4, 0);
  for (auto [time, width] : kMatrices) {
    const std::size_t rows = 3 * time, vocabulary = 5;
    const Floats table = random_floats(rng, vocabulary * width), positions = random_floats(rng, time * width);
    const Floats dy = random_floats(rng, rows * width);
    std::vector<std::int32_t> tokens(rows);
    for (auto& token : tokens) token = static_cast<std::int32_t>(rng.below(vocabulary));
    std::vector<double> y(rows * width), d_table(vocabulary * width), d_positions(time * width);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < width; ++c) {
        const std::size_t from = static_cast<std::size_t>(tokens[r]) * width + c, at = r % time * width + c;
        y[r * width + c] = static_cast<double>(table[from]) + positions[at];
        d_table[from] += dy[r * width + c];
        d_positions[at] += dy[r * width + c];
      }
    }
    at_every_level([&, time = time, width = width](const Kernels& k) {
      Floats out(rows * width), dt(vocabulary * width, 0.f), dp(time * width, 0.f),
          alone(vocabulary * width, 0.f);
      k.embed(tokens.data(), table.data(), positions.data(), out.data(), rows, time, width);
      expect_near(out, y, 1e-6);
      k.embed_backward(tokens.data(), dy.data(), dt.data(), dp.data(), rows, time, width);
      expect_near(dt, d_table, 2e-6);
      expect_near(dp, d_positions, 2e-6);
      k.embed_backward(tokens.data(), dy.data(), alone.data(), nullptr, rows, time, width);
      EXPECT_TRUE(same_bits(alone, dt));
      append(out, dt);
      append(out, dp);
      k.embed(tokens.data(), table.data(), nullptr, out.data(), rows, time, width);
      EXPECT_EQ(out[0], table[static_cast<std::size_t>(tokens[0]) * width]);
      return out;
    });
  }
}

}  // namespace
}  // namespace paceline::tensor::cpu
