// Functions of single elements. Each thread moves 16 bytes at a time, in strides of the whole launch; what is
// left over after the last whole 16 bytes goes to one thread each. Memory-bound: bytes read and written once,
// nothing kept.

#include "runtime/cuda/kernels/elementwise_params.h"
#include "runtime/cuda/kernels/portable.h"

namespace paceline::cuda {
namespace {

// Each function with its backward pass: `backward` is given what the header says, and the gradient of the
// output.
struct Relu {
  PL_DEVICE static float of(float x) { return x > 0 || x != x ? x : 0; }
  PL_DEVICE static float backward(float y, float dy) { return y > 0 ? dy : (y != y ? y : 0); }
};

// x s with s = 1 / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3): GPT-2's tanh form without its
// cancellation.
struct Gelu {
  static constexpr float kTwoRoots = 1.5957691216057308F;  // 2 sqrt(2/pi)
  static constexpr float kCube = 0.044715F;
  PL_DEVICE static float share(float x) {
    return quick_inverse(1 + quick_exp(-kTwoRoots * (x + kCube * x * x * x)));
  }
  PL_DEVICE static float of(float x) { return x * share(x); }
  PL_DEVICE static float backward(float x, float dy) {
    const float s = share(x), flat = s * (1 - s);
    // Where the share is 0 or 1 the slope is, too, however large x is.
    return dy * (flat == 0 ? s : s + x * flat * kTwoRoots * (1 + 3 * kCube * x * x));
  }
};

struct Tanh {
  PL_DEVICE static float of(float x) { return tanhf(x); }
  PL_DEVICE static float backward(float y, float dy) { return dy * (1 - y * y); }
};

struct Sigmoid {
  PL_DEVICE static float of(float x) { return 1 / (1 + expf(-x)); }
  PL_DEVICE static float backward(float y, float dy) { return dy * (y * (1 - y)); }
};

// each(first element, how many: kWide<T> or 1)
template <typename T, typename Each>
PL_DEVICE void for_all(std::size_t n, Each each) {
  constexpr std::size_t kWidth = kWide<T>;
  const std::size_t whole = n / kWidth;
  for (std::size_t v = thread_of_grid(); v < whole; v += threads_of_grid())
    each.template at<kWide<T>>(v * kWidth);
  const std::size_t left = whole * kWidth + thread_of_grid();
  if (left < n) each.template at<1>(left);
}

template <typename T, typename F>
struct Unary {
  const UnaryParams& p;
  F f;
  template <int kWidth>
  PL_DEVICE void at(std::size_t i) const {
    float x[kWidth];
    load<kWidth>(static_cast<const T*>(p.x) + i, x);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) x[k] = f(x[k]);
    store<kWidth>(static_cast<T*>(p.y) + i, x);
  }
};

template <typename T, typename F>
struct Binary {
  const BinaryParams& p;
  F f;
  template <int kWidth>
  PL_DEVICE void at(std::size_t i) const {
    float x[kWidth], y[kWidth];
    load<kWidth>(static_cast<const T*>(p.x) + i, x);
    load<kWidth>(static_cast<const T*>(p.y) + i, y);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) x[k] = f(x[k], y[k]);
    store<kWidth>(static_cast<T*>(p.z) + i, x);
  }
};

template <typename T, typename F>
PL_DEVICE void unary(const UnaryParams& p, F f) {
  for_all<T>(p.n, Unary<T, F>{p, f});
}
template <typename T, typename F>
PL_DEVICE void binary(const BinaryParams& p, F f) {
  for_all<T>(p.n, Binary<T, F>{p, f});
}

// z = f(x, row), kWidth elements at a time.
template <typename T, int kWidth, typename F>
PL_DEVICE void periodic(const PeriodicParams& p, F f) {
  const std::uint32_t whole = p.n / kWidth, period = p.period / kWidth;
  for (std::uint32_t v = thread_of_grid(); v < whole; v += threads_of_grid()) {
    float x[kWidth], row[kWidth];
    load<kWidth>(static_cast<const T*>(p.x) + static_cast<std::size_t>(v) * kWidth, x);
    load<kWidth>(static_cast<const T*>(p.row) + v % period * kWidth, row);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) x[k] = f(x[k], row[k]);
    store<kWidth>(static_cast<T*>(p.z) + static_cast<std::size_t>(v) * kWidth, x);
  }
}

struct Scale {
  float factor;
  PL_DEVICE float operator()(float x) const { return factor * x; }
};
template <typename F>
struct Forward {
  PL_DEVICE float operator()(float x) const { return F::of(x); }
};
template <typename F>
struct Backward {
  PL_DEVICE float operator()(float x, float dy) const { return F::backward(x, dy); }
};
struct Add {
  PL_DEVICE float operator()(float x, float y) const { return x + y; }
};
struct Multiply {
  PL_DEVICE float operator()(float x, float y) const { return x * y; }
};
struct BiasGelu {
  PL_DEVICE float operator()(float x, float bias) const { return Gelu::of(x + bias); }
};

}  // namespace

#define PL_BOTH_TYPES(name, Params, call)                  \
  PL_KERNEL(kElementwiseThreads, name##_f32, Params, p) {  \
    using T = float;                                       \
    call;                                                  \
  }                                                        \
  PL_KERNEL(kElementwiseThreads, name##_bf16, Params, p) { \
    using T = Bf16;                                        \
    call;                                                  \
  }

PL_BOTH_TYPES(scale, UnaryParams, unary<T>(p, Scale{p.factor}))
PL_BOTH_TYPES(relu, UnaryParams, unary<T>(p, Forward<Relu>{}))
PL_BOTH_TYPES(gelu, UnaryParams, unary<T>(p, Forward<Gelu>{}))
PL_BOTH_TYPES(tanh, UnaryParams, unary<T>(p, Forward<Tanh>{}))
PL_BOTH_TYPES(sigmoid, UnaryParams, unary<T>(p, Forward<Sigmoid>{}))
PL_BOTH_TYPES(relu_backward, BinaryParams, binary<T>(p, Backward<Relu>{}))
PL_BOTH_TYPES(gelu_backward, BinaryParams, binary<T>(p, Backward<Gelu>{}))
PL_BOTH_TYPES(tanh_backward, BinaryParams, binary<T>(p, Backward<Tanh>{}))
PL_BOTH_TYPES(sigmoid_backward, BinaryParams, binary<T>(p, Backward<Sigmoid>{}))
PL_BOTH_TYPES(add, BinaryParams, binary<T>(p, Add{}))
PL_BOTH_TYPES(multiply, BinaryParams, binary<T>(p, Multiply{}))
PL_BOTH_TYPES(add_row, PeriodicParams, (periodic<T, kWide<T>>(p, Add{})))
PL_BOTH_TYPES(add_row_any, PeriodicParams, (periodic<T, 1>(p, Add{})))
PL_BOTH_TYPES(bias_gelu, PeriodicParams, (periodic<T, kWide<T>>(p, BiasGelu{})))
PL_BOTH_TYPES(bias_gelu_any, PeriodicParams, (periodic<T, 1>(p, BiasGelu{})))

}  // namespace paceline::cuda
