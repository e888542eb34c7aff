#pragma once

// Optimizer steps and what they need: each one pass over memory.

#include "runtime/tensor/cpu/kernels/body/vector.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::tensor::cpu {
namespace {

// Squares of floats are exact in double, so fused and unfused sums are equal and every level gives the same
// bits.
double squared_norm(const float* x, std::size_t n) {
  D even = zero_d(), odd = zero_d();
  std::size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const D a = widen(load(x + i)), b = widen(load(x + i + kLanes));
    even = fma(a, a, even);
    odd = fma(b, b, odd);
  }
  if (i + kLanes <= n) {
    const D a = widen(load(x + i));
    even = fma(a, a, even);
    i += kLanes;
  }
  if (i < n) {
    const D b = widen(load(x + i, n - i));
    odd = fma(b, b, odd);
  }
  double sums[2 * kLanes];
  store(sums, even);
  store(sums + kLanes, odd);
  for (std::size_t width = kLanes; width >= 1; width /= 2) {
    for (std::size_t k = 0; k < width; ++k) sums[k] += sums[k + width];
  }
  return sums[0];
}

struct SgdConstants {
  F clip, minus_rate, momentum, decay;
};

// Weights and momentum (when there is one) after the step.
inline F sgd_momentum(const SgdConstants& c, F& b, F w, F g, bool nesterov) {
  g = fma(c.decay, w, g * c.clip);
  b = fma(c.momentum, b, g);
  return fma(c.minus_rate, nesterov ? fma(c.momentum, b, g) : b, w);
}

void sgd(const SgdStep& step, float* weights, float* momentum, const float* gradient, std::size_t n) {
  const SgdConstants c{set(step.clip), set(-step.learning_rate), set(step.momentum), set(step.weight_decay)};
  if (momentum == nullptr) {
    auto next = [&](F w, F g) { return fma(c.minus_rate, fma(c.decay, w, g * c.clip), w); };
    each_vector(
        n, [&](std::size_t i) { store(weights + i, next(load(weights + i), load(gradient + i))); },
        [&](std::size_t i, std::size_t m) {
          store(weights + i, next(load(weights + i, m), load(gradient + i, m)), m);
        });
    return;
  }
  each_vector(
      n,
      [&](std::size_t i) {
        F b = load(momentum + i);
        store(weights + i, sgd_momentum(c, b, load(weights + i), load(gradient + i), step.nesterov));
        store(momentum + i, b);
      },
      [&](std::size_t i, std::size_t m) {
        F b = load(momentum + i, m);
        store(weights + i, sgd_momentum(c, b, load(weights + i, m), load(gradient + i, m), step.nesterov), m);
        store(momentum + i, b, m);
      });
}

struct AdamConstants {
  F clip, minus_step, beta1, one_minus_beta1, beta2, one_minus_beta2, root, epsilon, decay, shrink;
};

inline F adam_weights(const AdamConstants& c, F& m, F& v, F w, F g) {
  w = w * c.shrink;
  g = fma(c.decay, w, g * c.clip);
  m = fma(c.beta1, m, c.one_minus_beta1 * g);
  v = fma(c.beta2, v, c.one_minus_beta2 * (g * g));
  return fma(c.minus_step, m / fma(sqrt(v), c.root, c.epsilon), w);
}

void adam(const AdamStep& step, float* weights, float* first, float* second, const float* gradient,
          std::size_t n) {
  const AdamConstants c{
      set(step.clip),         set(-step.step_size),      set(step.beta1),           set(step.one_minus_beta1),
      set(step.beta2),        set(step.one_minus_beta2), set(step.root_correction), set(step.epsilon),
      set(step.weight_decay), set(step.shrink)};
  each_vector(
      n,
      [&](std::size_t i) {
        F m = load(first + i), v = load(second + i);
        store(weights + i, adam_weights(c, m, v, load(weights + i), load(gradient + i)));
        store(first + i, m);
        store(second + i, v);
      },
      [&](std::size_t i, std::size_t k) {
        F m = load(first + i, k), v = load(second + i, k);
        store(weights + i, adam_weights(c, m, v, load(weights + i, k), load(gradient + i, k)), k);
        store(first + i, m, k);
        store(second + i, v, k);
      });
}

struct AdagradConstants {
  F clip, minus_rate, epsilon, decay;
};

inline F adagrad_weights(const AdagradConstants& c, F& sum, F w, F g) {
  g = fma(c.decay, w, g * c.clip);
  sum = fma(g, g, sum);
  return fma(c.minus_rate, g / (sqrt(sum) + c.epsilon), w);
}

void adagrad(const AdagradStep& step, float* weights, float* sum, const float* gradient, std::size_t n) {
  const AdagradConstants c{set(step.clip), set(-step.learning_rate), set(step.epsilon),
                           set(step.weight_decay)};
  each_vector(
      n,
      [&](std::size_t i) {
        F s = load(sum + i);
        store(weights + i, adagrad_weights(c, s, load(weights + i), load(gradient + i)));
        store(sum + i, s);
      },
      [&](std::size_t i, std::size_t k) {
        F s = load(sum + i, k);
        store(weights + i, adagrad_weights(c, s, load(weights + i, k), load(gradient + i, k)), k);
        store(sum + i, s, k);
      });
}

struct FtrlConstants {
  F clip, minus_inverse_alpha, least, l1, minus_l1;  // least: beta / alpha + l2
};

inline F ftrl_weights(const FtrlConstants& c, F& z, F& q, F w, F g) {
  g = g * c.clip;
  const F before = sqrt(q);
  q = fma(g, g, q);
  const F root = sqrt(q);
  z = fma((root - before) * c.minus_inverse_alpha, w, z + g);
  const F within = min(c.l1, max(c.minus_l1, z));  // sign(z)*l1, or z itself where it is smaller
  return (within - z) / (c.least - root * c.minus_inverse_alpha);
}

void ftrl(const FtrlStep& step, float* weights, float* z, float* squares, const float* gradient,
          std::size_t n) {
  const FtrlConstants c{set(step.clip), set(-1 / step.alpha), set(step.beta / step.alpha + step.l2),
                        set(step.l1), set(-step.l1)};
  each_vector(
      n,
      [&](std::size_t i) {
        F a = load(z + i), q = load(squares + i);
        store(weights + i, ftrl_weights(c, a, q, load(weights + i), load(gradient + i)));
        store(z + i, a);
        store(squares + i, q);
      },
      [&](std::size_t i, std::size_t k) {
        F a = load(z + i, k), q = load(squares + i, k);
        store(weights + i, ftrl_weights(c, a, q, load(weights + i, k), load(gradient + i, k)), k);
        store(z + i, a, k);
        store(squares + i, q, k);
      });
}

void compensate(float factor, const float* g, const float* w, const float* w_read, float* y, std::size_t n) {
  const F lambda = set(factor);
  const auto late = [&](F a, F now, F then) { return fma(lambda * (a * a), now - then, a); };
  each_vector(
      n, [&](std::size_t i) { store(y + i, late(load(g + i), load(w + i), load(w_read + i))); },
      [&](std::size_t i, std::size_t k) {
        store(y + i, late(load(g + i, k), load(w + i, k), load(w_read + i, k)), k);
      });
}

}  // namespace
}  // namespace paceline::tensor::cpu
